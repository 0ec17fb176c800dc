import { setMaxListeners } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { historyToJSON } from '@temporalio/common/lib/proto-utils';
import { seededRandom } from '../../../sandbox/random';
import { ProcessEnvironment } from '../../harness/process-environment';
import { ROOT } from '../../harness/worker-process';
import { RestartableServer, throughRestarts } from '../../harness/restartable-server';
import { drawParts, type Part } from '../../harness/soak/draw-parts';
import { Machines } from '../../harness/soak/machines';
import { type End, endOf, type Facts, lies } from '../../harness/soak/oracle';
import { decideAll, People } from '../../harness/soak/people';
import { counted, say, SEED } from '../../harness/soak/say';
import { CONFIRM_MS, FAULTS, HTTP_TIMEOUT } from '../../harness/soak/service';

const FOLLOW_UPS = 60;

/** Machines and people are left alone from here on, whatever still runs; then the deadline ends every follow-up. */
const CHAOS_MS = 30_000;

/** A reset at the end of the chaos, a deadline that was extended, and the start of the server and the first workers. */
const LIMIT_MS = 240_000;

/**
 * Turns of up to 6 s are seen several times; `reconcile` outlasts one; `confirm` is as long as the service's replicas lag
 * and a message waits for its take-up. A send that nobody reports is given up after 22 to 29 s.
 */
const TIMES = {
  deadline: '70s',
  polling: { initial: '2s', growth: 0.2, maximum: '5s', jitter: 0.2 },
  reconcile: '6s',
  settle: '3s',
  confirm: `${CONFIRM_MS}ms`,
} as const;

// Proves W9.
it(
  'sixty follow-ups at once, through what machines, services and people do: each ends, nothing is sent that was not allowed, no receipt lies, and no worker ends by itself',
  async () => {
    say(`FOLLOW_UP_SOAK_SEED=${SEED}`);
    const random = seededRandom(SEED);
    const sandbox = { seed: SEED, messagesPerHour: null };
    await RestartableServer.with((server) =>
      ProcessEnvironment.with(
        { address: server.address, sandbox, env: { AGENT_API_TIMEOUT: HTTP_TIMEOUT } },
        async (environment) => {
          const parts = drawParts(FOLLOW_UPS, random);
          for (const { job, faults } of parts) {
            environment.sandbox.addJob(job);
            for (const fault of faults) environment.sandbox.setFault(fault);
          }
          for (const fault of FAULTS) environment.sandbox.setFault(fault);

          const over = new AbortController();
          const everybody = new Map<string, People>();
          const machines = new Machines(environment, server, random);
          const chaosOver = AbortSignal.any([over.signal, AbortSignal.timeout(CHAOS_MS)]);
          // Everybody waits with it.
          setMaxListeners(0, chaosOver);
          const running = machines.run(chaosOver);
          const deciding = decideAll(environment, everybody, over.signal);
          const open = new Set(parts.map(({ job }) => job.id));
          const tellOpen = () => {
            say(`not ended yet: ${[...open].join(', ')}`);
          };
          const telling = setTimeout(tellOpen, LIMIT_MS - 20_000);
          const playOne = async (part: Part) => {
            const one = await play(environment, part, everybody, chaosOver);
            open.delete(part.job.id);
            return one;
          };
          const played = await Promise.all(parts.map(playOne));
          clearTimeout(telling);
          over.abort();
          await Promise.all([running, deciding]);

          const { counts, died } = machines.log;
          const stories = played.map((each) => factsOf(environment, each));
          summarize(stories, counts);
          for (const words of died) say(`a worker ended by itself: ${words}`);
          const found = stories.flatMap((facts) => lies(facts).map((lie) => `${facts.part.job.id}: ${lie}`));
          for (const facts of stories) if (lies(facts).length > 0) await keep(environment, facts);
          machines.dismiss();
          expect(found).toEqual([]);
          expect(died).toEqual([]);
          expect(counts.kill).toBeGreaterThan(0);
          const processed = stories.filter(({ posts }) => posts.some((post) => post.processed));
          expect(processed.length).toBeGreaterThan(FOLLOW_UPS / 2);
        },
      ),
    );
  },
  LIMIT_MS,
);

interface Played {
  readonly part: Part;
  readonly workflowId: string;
  readonly firstRunId: string;
  readonly people: People;
  readonly end: End;
}

/** One follow-up from its start to the end of its last run. */
async function play(
  environment: ProcessEnvironment,
  part: Part,
  everybody: Map<string, People>,
  chaosOver: AbortSignal,
): Promise<Played> {
  await sleep(part.startAfterMs);
  const { projectId, id: jobId } = part.job;
  for (const { change, pauseMs } of part.before) {
    environment.sandbox.changeJob({ projectId, jobId }, change);
    await sleep(pauseMs);
  }
  const request = { projectId, jobId, requestId: 'soak', ...TIMES, ...part.asked };
  const following = await throughRestarts(() => environment.send(request));
  const { workflowId } = following.handle;
  const people = new People(environment, part, following);
  everybody.set(workflowId, people);
  await people.act(chaosOver);
  const end = await endOf(environment.client, workflowId);
  return { part, workflowId, firstRunId: following.firstRunId, people, end };
}

function factsOf(environment: ProcessEnvironment, played: Played): Facts {
  const { part, firstRunId, end, people } = played;
  const key = { projectId: part.job.projectId, jobId: part.job.id };
  const { journal } = environment.sandbox;
  return {
    part,
    firstRunId,
    end,
    posts: journal.entries({ ...key, operation: 'message' }),
    gets: journal.entries({ ...key, operation: 'get' }),
    report: environment.sandbox.job(key),
    diary: people.diary,
  };
}

function summarize(stories: readonly Facts[], machines: object): void {
  const ends = stories.map(({ end }) => {
    const delivery = end.kind === 'other' ? undefined : end.receipt?.delivery;
    const words = end.kind === 'result' ? end.result.status : end.kind === 'failure' ? end.type : end.kind;
    return `${words} (${delivery?.confirmedBy ?? delivery?.verdict ?? 'nothing known'})`;
  });
  const posts = stories.flatMap((each) => each.posts).length;
  const resets = stories.flatMap(({ diary }) => diary.resets).length;
  const decisions = stories.flatMap(({ diary }) => diary.decisions).length;
  say(`${JSON.stringify(machines)} ${posts} POSTs, ${resets} resets, ${decisions} decisions`);
  say(counted(ends));
}

/** Keeps everything that is known of a follow-up with a lie, for whoever looks for the cause. */
async function keep({ client }: ProcessEnvironment, facts: Facts): Promise<void> {
  const folder = path.join(ROOT, 'reports', 'soak', String(SEED));
  await mkdir(folder, { recursive: true });
  const runs = [facts.firstRunId, ...facts.diary.resets.map(({ runId }) => runId)];
  const { projectId, id } = facts.part.job;
  const workflowId = `follow-up:${projectId}:${id}:soak`;
  const historyOf = async (runId: string) => {
    const handle = client.workflow.getHandle(workflowId, runId);
    return JSON.parse(historyToJSON(await throughRestarts(() => handle.fetchHistory()))) as unknown;
  };
  const histories = await Promise.all(runs.map(historyOf));
  const file = path.join(folder, `${id}.json`);
  await writeFile(file, JSON.stringify({ lies: lies(facts), ...facts, histories }, null, 1));
  say(`${lies(facts).join('; ')}: ${file}`);
}
