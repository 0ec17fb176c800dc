import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { stripTemporalEnv } from '../dev/dev-server';
import type { PostgresServer } from './postgres-server';
import type { JobKey } from '../sandbox';
import { eventually } from '../test/harness/eventually';
import { failedTasks } from '../test/harness/failed-tasks';
import { ours } from './contestants';
import { Ground } from './ground';

const STARTER = path.resolve(__dirname, '../dist/starter.js');

const BATCH_ITEMS = 500;
const BATCH_PROJECTS = 10;
const LIMITED_ITEMS = 15;

/** Short, so that a story takes minutes; the deadline outlasts all that is broken on the way. */
const TIMES = [
  ...['--polling-initial', '2s', '--polling-maximum', '5s', '--confirm', '3s', '--settle', '2s'],
  ...['--reconcile', '10s', '--deadline', '30m'],
];

/** A part that is broken may hold everything up for so long: tasks of what died are given up after 10 to 60 s. */
const PATIENCE_MS = 600_000;

/** What was seen, by name. */
export type StoryFacts = Record<string, string | number>;

/** The project from outside, by its commands, on a server that is ended with the story. @throws Error where it goes wrong */
export async function outsideStory(server: PostgresServer, say: (line: string) => void): Promise<StoryFacts> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'agent-follow-up-story-'));
  const ground = await Ground.open(() => Promise.resolve(server), {});
  try {
    const story = new Story(ground, server, folder, say);
    return {
      ...(await story.single()),
      ...(await story.schedule()),
      ...(await story.limits()),
      ...(await story.batch()),
      ...(await story.noTaskFailed()),
    };
  } finally {
    await ground.close();
    await rm(folder, { recursive: true, force: true });
  }
}

class Story {
  private readonly env: NodeJS.ProcessEnv;

  constructor(
    private readonly ground: Ground,
    private readonly server: PostgresServer,
    private readonly folder: string,
    private readonly say: (line: string) => void,
  ) {
    this.env = { ...stripTemporalEnv(process.env), TEMPORAL_ADDRESS: server.address };
  }

  /** A namespace is prepared, two workers start, and a message is sent and followed to its end. */
  async single(): Promise<StoryFacts> {
    await this.starter('setup');
    await this.ground.startWorker(ours);
    await this.ground.startWorker(ours);
    const key = this.addJob('single', 2_000);
    const { status, prLink, followUp } = await this.json<{
      status: string;
      prLink: string;
      followUp: { delivery: { verdict: string } };
    }>('send', ...named(key), '--prompt', 'Fix the links.', '--json', ...TIMES);
    expect(status === 'completed' && prLink.length > 0 && followUp.delivery.verdict === 'accepted', 'a send');
    this.expectOnce('single', 1);
    this.say(`a follow-up: ${status}, ${prLink}`);
    return { 'follow-up': status };
  }

  /** A schedule fires by itself, and once more when it is triggered. */
  async schedule(): Promise<StoryFacts> {
    const key = this.addJob('scheduled', 500);
    const file = await this.file('schedule', [key]);
    await this.starter(
      'schedule',
      'create',
      'often',
      file,
      '--every',
      '15s',
      '--overlap',
      'allow-all',
      ...TIMES,
    );
    await this.processed('scheduled', 2);
    const schedule = this.ground.client.schedule.getHandle('often');
    await schedule.pause();
    const before = this.messages('scheduled').length;
    await this.starter('schedule', 'trigger', 'often');
    await this.processed('scheduled', before + 1);
    await schedule.delete();
    this.say(`a schedule fired ${before} times, and was triggered once`);
    return { 'firings of a schedule': before + 1 };
  }

  /** One message a second for each project, set and cleared by the starter. */
  async limits(): Promise<StoryFacts> {
    await this.starter('limits', 'set', '--sends-per-project', '1/s');
    const projects = ['limited-a', 'limited-b'];
    const keys = projects.flatMap((project) =>
      Array.from({ length: LIMITED_ITEMS }, () => this.addJob(project, 500)),
    );
    const batch = this.starter('batch', 'run', await this.file('limited', keys), '--json', ...TIMES);
    await batch;
    const seconds = projects.map((project) => {
      const times = this.messages(project).map(({ time }) => Date.parse(time));
      return (Math.max(...times) - Math.min(...times)) / 1_000;
    });
    for (const project of projects) this.expectOnce(project, LIMITED_ITEMS);
    // Four partitions, each with a quarter of the limit, may each let one more pass at once.
    expect(Math.min(...seconds) >= LIMITED_ITEMS / 2, `a limit of 1/s: ${seconds.join(', ')} s`);
    await this.starter('limits', 'clear');
    this.say(`${LIMITED_ITEMS} messages of a project, limited to 1/s: ${seconds.join(' and ')} s`);
    return { [`${LIMITED_ITEMS} messages of a project at 1/s, seconds`]: seconds.join(', ') };
  }

  /** A batch, during which each part is killed, and a follow-up that waits all the time. */
  async batch(): Promise<StoryFacts> {
    const waiting = this.addJob('waiting', null);
    const sent = await this.json<{ workflowId: string }>(
      ...['send', ...named(waiting), '--prompt', 'Wait.', '--no-wait', '--json', ...TIMES],
    );
    const keys = Array.from({ length: BATCH_ITEMS }, (_, index) =>
      this.addJob(`batch-${index % BATCH_PROJECTS}`, 4_000),
    );
    const file = await this.file('batch', keys);
    const begunAt = performance.now();
    const words = ['batch', 'run', file, '--batch-id', 'story', '--concurrency', '100', ...TIMES];
    const caller = spawn(process.execPath, [STARTER, ...words], { env: this.env, stdio: 'ignore' });
    for (const [share, what, breakIt] of this.breaks(caller.pid ?? 0)) {
      await this.processed('batch-', share * BATCH_ITEMS);
      this.say(`${this.messages('batch-').length} sent; ${what}`);
      await breakIt();
    }
    const summary = await this.json<{
      state: string;
      summary: { settled: number; byFailure: Record<string, number> };
    }>(...['batch', 'watch', 'story', '--json']);
    const seconds = (performance.now() - begunAt) / 1_000;
    expect(summary.state === 'done' && summary.summary.settled === BATCH_ITEMS, JSON.stringify(summary));
    this.ground.sandbox.changeJob(waiting, { status: 'completed' });
    const { status } = await this.json<{ status: string }>('watch', sent.workflowId, '--json');
    const messages = new Map<string, number>();
    for (const { projectId, jobId } of this.messages('batch-')) {
      const name = `${projectId}/${jobId}`;
      messages.set(name, (messages.get(name) ?? 0) + 1);
    }
    const twice = [...messages.values()].filter((count) => count > 1).length;
    expect(twice === 0, `${twice} items were sent twice`);
    this.expectOnce('waiting', 1);
    expect(status === 'completed', `the follow-up that waited through all of it: ${status}`);
    const { byFailure } = summary.summary;
    const unknown = byFailure.DeliveryUnknown ?? 0;
    expect(
      Object.keys(byFailure).every((type) => type === 'DeliveryUnknown'),
      JSON.stringify(byFailure),
    );
    expect(
      messages.size >= BATCH_ITEMS - unknown,
      'every item was sent, or its end says that nobody can tell',
    );
    this.say(`the batch: ${JSON.stringify(summary.summary)}`);
    return {
      'items of the batch': BATCH_ITEMS,
      'seconds, with all that was broken': Math.round(seconds),
      'items whose message arrived once': messages.size,
      'items whose message arrived twice': twice,
      'ends as DeliveryUnknown': unknown,
      'the follow-up that waited meanwhile': status,
    };
  }

  /** What is broken, and after which share of the batch. */
  private breaks(callerPid: number): [share: number, what: string, breakIt: () => Promise<unknown>][] {
    const { ground, server } = this;
    const [worker, other] = ground.workerPids();
    const replaceWorker = async (pid = 0) => {
      process.kill(pid, 'SIGKILL');
      await ground.startWorker(ours);
    };
    return [
      [0.1, 'the caller is killed', () => Promise.resolve(process.kill(callerPid, 'SIGKILL'))],
      [0.2, 'a worker is killed, and another started', () => replaceWorker(worker)],
      [
        0.35,
        'the Temporal server is killed, and started three seconds later',
        async () => {
          await server.kill();
          await sleep(3_000);
          await server.start();
        },
      ],
      [
        0.5,
        'PostgreSQL is killed, and started five seconds later',
        async () => {
          await server.postgres.kill();
          await sleep(5_000);
          await server.postgres.start();
        },
      ],
      [0.65, 'PostgreSQL is restarted', () => server.postgres.restart()],
      [0.8, 'the other worker is killed, and another started', () => replaceWorker(other)],
    ];
  }

  /** Failed workflow tasks of everything that has run, with their causes. */
  async noTaskFailed(): Promise<StoryFacts> {
    const { workflows, failed } = await failedTasks(this.ground.client, '');
    expect(failed.length === 0, `failed workflow tasks: ${failed.join('; ')}`);
    return { workflows, 'failed workflow tasks': failed.length };
  }

  private async starter(...words: string[]): Promise<string> {
    const options = { env: this.env, maxBuffer: 64 * 1_024 * 1_024 };
    const { stdout } = await promisify(execFile)(process.execPath, [STARTER, ...words], options);
    return stdout;
  }

  /** The last line that it prints, which is the whole document where there is one only. */
  private async json<T>(...words: string[]): Promise<T> {
    const stdout = (await this.starter(...words)).trim();
    try {
      return JSON.parse(stdout) as T;
    } catch {
      return JSON.parse(stdout.split('\n').at(-1) ?? '') as T;
    }
  }

  private addJob(projectId: string, durationMs: number | null): JobKey {
    const { jobId } = this.ground.sandbox.addJob({ projectId, turn: { durationMs } });
    return { projectId, jobId };
  }

  private async file(name: string, keys: readonly JobKey[]): Promise<string> {
    const file = path.join(this.folder, `${name}.jsonl`);
    const lines = keys.map(({ projectId, jobId }) =>
      JSON.stringify({ project: projectId, job: jobId, prompt: 'Rebase on main.' }),
    );
    await writeFile(file, lines.join('\n'));
    return file;
  }

  /** The processed messages of all projects whose name begins so. */
  private messages(project: string) {
    const entries = this.ground.sandbox.journal.entries({ operation: 'message', processed: true });
    return entries.filter(({ projectId }) => projectId?.startsWith(project));
  }

  private async processed(project: string, atLeast: number): Promise<void> {
    const count = () => this.messages(project).length;
    await eventually(`${atLeast} messages of ${project}`, count, {
      timeoutMs: PATIENCE_MS,
      until: (messages) => messages >= atLeast,
    });
  }

  private expectOnce(project: string, jobs: number): void {
    const names = this.messages(project).map(({ jobId }) => jobId);
    expect(names.length === jobs && new Set(names).size === jobs, `${project}: each of ${jobs} sent once`);
  }
}

function named({ projectId, jobId }: JobKey): string[] {
  return ['--project', projectId, '--job', jobId];
}

function expect(holds: boolean, what: string): void {
  if (!holds) throw new Error(`not as it should be: ${what}`);
}
