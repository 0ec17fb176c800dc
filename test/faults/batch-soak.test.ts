import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { expect, it } from '@jest/globals';
import { type Client, ServiceError, type WorkflowHandle, WorkflowNotFoundError } from '@temporalio/client';
import { type CheckedBatch, hasCode, type ItemEnd } from '../../src/client';
import { requestIdOf } from '../../src/core/batch';
import { followUpWorkflowId } from '../../src/core/ids';
import { BATCH_TASK_TIMEOUT_MS } from '../../src/core/batch-workflows';
import { SIGNAL_WAKE } from '../../src/core/names';
import { seededRandom } from '../../sandbox/random';
import { eventually } from '../harness/eventually';
import { FORGETFUL } from '../harness/forgetful-server';
import { ProcessEnvironment } from '../harness/process-environment';
import { RestartableServer, throughRestarts } from './restartable-server';
import { BatchActions, MOST_OPEN } from './soak/batch-actions';
import { type SoakFile, soakFile } from './soak/batch-files';
import { Machines } from './soak/machines';
import { Schedules } from './soak/schedules';

const BATCHES = 4;

/** Each does one thing after the other; some take long while no worker answers. */
const PEOPLE = 3;

/** How long people and machines do things at random, and from one deed of people to the next at most. */
const CHAOS_MS = 75_000;
const MAX_PAUSE_MS = 400;

/** Longer than an item takes after the chaos, and than its page stands still if a worker was killed in a workflow task. */
const PATIENCE_MS = BATCH_TASK_TIMEOUT_MS + 30_000;

/** As long, and then what a page takes to find out that no event will tell it of an end. */
const EVERYTHING_ENDS_MS = BATCH_TASK_TIMEOUT_MS + 140_000;

/** The chaos, each batch run to its end a few times, and the start of a server. */
const LIMIT_MS = 600_000;

const LOOK_EVERY_SECOND = `--import=${pathToFileURL(path.join(__dirname, 'soak/look-every-second.mjs')).href}`;

/** `FOLLOW_UP_SOAK_SEED` repeats the actions of a run; their order in time is the machine's. */
const seed = Number(process.env.FOLLOW_UP_SOAK_SEED ?? Math.floor(Math.random() * 2 ** 31));

it(
  'whatever people and machines do to batches and schedules: no message is processed twice, no end lies, and every workflow ends',
  async () => {
    say(`FOLLOW_UP_SOAK_SEED=${seed}`);
    const options = { sandbox: { seed, messagesPerHour: null }, env: { NODE_OPTIONS: LOOK_EVERY_SECOND } };
    await RestartableServer.with(
      (server) =>
        ProcessEnvironment.with({ ...options, address: server.address }, async (environment) => {
          const { found, machines, scheduled } = await soak(environment, server);
          expect(found).toEqual([]);
          expect(machines.died).toEqual([]);
          expect(machines.counts.kill).toBeGreaterThan(0);
          expect(scheduled).toBeGreaterThan(20);
        }),
      FORGETFUL,
    );
  },
  LIMIT_MS,
);

async function soak(environment: ProcessEnvironment, server: RestartableServer) {
  const random = seededRandom(seed);
  const actions = new BatchActions(environment, random);
  const schedules = new Schedules(environment);
  const files = Array.from({ length: BATCHES }, (_, index) => soakFile(environment, `soak-${index}`, random));
  const chaosOver = AbortSignal.timeout(CHAOS_MS);
  const machines = new Machines(environment, server, seededRandom(seed + 1));
  const running = machines.run(chaosOver);
  await schedules.create();
  for (const file of files) await throughRestarts(() => actions.start(file));
  const done = new Map<string, number>();
  const person = async () => {
    while (!chaosOver.aborted) {
      const file = files[Math.floor(random() * files.length)];
      if (file === undefined) continue;
      const what = await actions.doOne(file);
      done.set(what, (done.get(what) ?? 0) + 1);
      await sleep(random() * MAX_PAUSE_MS);
    }
  };
  const watching = watch(environment, files, actions, chaosOver);
  await Promise.all([running, ...Array.from({ length: PEOPLE }, person)]);
  const tooMany = await watching;
  await schedules.delete();
  const told = await Promise.all(files.map((file) => endsOf(actions, file)));
  await everyWorkflowEnds(environment);
  const scheduled = await schedules.lies();

  const ends = new Map<string, number>();
  for (const { outcome, delivery } of told.flat()) {
    const end = `${outcome} (${delivery ?? 'nobody can tell'})`;
    ends.set(end, (ends.get(end) ?? 0) + 1);
  }
  say(`${JSON.stringify(machines.log.counts)}; ${inWords(done)}`);
  say(`ends: ${inWords(ends)}; ${scheduled.followUps} follow-ups of schedules`);
  machines.dismiss();
  const checked = await Promise.all(files.map((file) => actions.check(file)));
  const found = checked.flatMap((batch, index) => lies(environment, batch, told[index] ?? []));
  return {
    found: [...found, ...tooMany, ...scheduled.found],
    machines: machines.log,
    scheduled: scheduled.followUps,
  };
}

/** How far behind its store the server's list may be, and a restart of the server may take. */
const LIST_IS_RIGHT_WITHIN_MS = 3_000;

/** Whether more is open than any concurrency of a batch has allowed, or two of one job, by the server's own list. */
async function watch(
  { client }: ProcessEnvironment,
  files: readonly SoakFile[],
  { resetItems }: BatchActions,
  stop: AbortSignal,
): Promise<string[]> {
  const found = new Set<string>();
  let before = new Set<string>();
  while (!stop.aborted) {
    const now = new Set<string>();
    for (const { batchId } of files) {
      const query = `FollowUpBatch = '${batchId}' AND WorkflowType = 'followUp' AND ExecutionStatus = 'Running'`;
      const jobs: string[] = [];
      await throughRestarts(async () => {
        jobs.length = 0;
        for await (const { workflowId } of client.workflow.list({ query }))
          if (!resetItems.has(workflowId)) jobs.push(workflowId.split(':').slice(0, 3).join(':'));
      });
      if (jobs.length > MOST_OPEN) now.add(`${batchId}: more open than allowed`);
      for (const job of jobs)
        if (jobs.indexOf(job) !== jobs.lastIndexOf(job)) now.add(`${batchId}: two open of ${job}`);
    }
    // What is listed twice in a row is no delay of the list.
    for (const each of now) if (before.has(each)) found.add(each);
    before = now;
    await sleep(LIST_IS_RIGHT_WITHIN_MS, undefined, { signal: stop }).catch(() => undefined);
  }
  return [...found];
}

/** Lets a batch come to its end, by starting it again as often as it takes, and reads the ends that can be read. */
async function endsOf(actions: BatchActions, file: SoakFile): Promise<readonly ItemEnd[]> {
  const { batches } = actions;
  try {
    for (;;) {
      const { state } = await batches.getHandle(file.batchId).describe();
      if (state === 'completed') break;
      // It may be paused, or have lost what its starter would hand over.
      if (state === 'running')
        await batches
          .getHandle(file.batchId)
          .resume()
          .catch(() => undefined);
      await actions.start(file);
      const ended = await Promise.race([
        batches.getHandle(file.batchId).result(),
        sleep(PATIENCE_MS, null, { ref: false }),
      ]);
      // A page that somebody has ended is missed within ten minutes; an operator doesn't wait so long.
      if (ended === null) await actions.terminate(file).catch(unlessEnded);
    }
    return await readWhenAnswered(() => batches.getHandle(file.batchId).settled());
  } catch (error) {
    // Pages were deleted: nobody can tell, and it says so.
    if (hasCode(error, 'RESULTS_UNREADABLE')) return error.ends ?? [];
    if (hasCode(error, 'BATCH_FORGOTTEN')) return [];
    throw error;
  }
}

function unlessEnded(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

/** A page that has just been told to close may still be running, and its worker busy. */
async function readWhenAnswered<T>(read: () => Promise<T>): Promise<T> {
  const ask = async (): Promise<{ ends: T } | { error: unknown } | null> => {
    try {
      return { ends: await read() };
    } catch (error) {
      return error instanceof ServiceError ? null : { error };
    }
  };
  const answer = await eventually('the pages answer', ask, { timeoutMs: 60_000 });
  if ('error' in answer) throw answer.error;
  return answer.ends;
}

/** What is wrong with the ends of a batch, by the journal of the service. */
function lies(
  { sandbox }: ProcessEnvironment,
  { batchId, items }: CheckedBatch,
  ends: readonly ItemEnd[],
): string[] {
  const found: string[] = [];
  const endOf = new Map(ends.map((end) => [end.workflowId, end]));
  if (endOf.size !== ends.length) found.push(`${batchId}: an item has two ends`);
  for (const { key, request } of items) {
    const { projectId, jobId, prompt } = request;
    const workflowId = followUpWorkflowId(projectId, jobId, requestIdOf(batchId, { key, request }));
    const processed = sandbox.journal
      .entries({ projectId, jobId, operation: 'message', processed: true })
      .filter((entry) => entry.prompt?.text === prompt).length;
    const end = endOf.get(workflowId);
    const words = `${batchId} ${jobId}: processed ${processed} times, ${end?.outcome ?? 'no end'} ${end?.delivery ?? ''}`;
    if (processed > 1) found.push(words);
    if (end?.delivery === 'accepted' && processed !== 1) found.push(words);
    if ((end?.delivery === 'not-sent' || end?.delivery === 'rejected') && processed > 0) found.push(words);
  }
  return found;
}

async function everyWorkflowEnds({ client, taskQueue }: ProcessEnvironment): Promise<void> {
  const query = `TaskQueue = '${taskQueue}' AND ExecutionStatus = 'Running'`;
  let running: string[] = [];
  const woken = new Set<string>();
  const ended = eventually(
    'every workflow ends',
    async () => {
      running = [];
      for await (const { workflowId } of client.workflow.list({ query })) {
        running.push(workflowId);
        if (await wake(client.workflow.getHandle(workflowId))) woken.add(workflowId);
      }
      return running.length === 0;
    },
    { timeoutMs: EVERYTHING_ENDS_MS },
  );
  await ended.catch(async (error: unknown) => {
    for (const workflowId of running) say(await stateOf(client, workflowId));
    throw new Error(`these run for ever: ${running.join(', ')}`, { cause: error });
  });
  if (woken.size > 0) say(`had no workflow task, and were woken: ${[...woken].join(', ')}`);
}

/** Does for a workflow that lacks its first workflow task what docs/batches.md tells an operator to do. */
async function wake(handle: WorkflowHandle): Promise<boolean> {
  try {
    if ((await handle.describe()).historyLength > 1) return false;
    await handle.signal(SIGNAL_WAKE);
    return true;
  } catch (error) {
    // It has ended meanwhile.
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

/** What the server knows of a workflow that does not end, for whoever looks for the cause. */
async function stateOf(client: Client, workflowId: string): Promise<string> {
  const handle = client.workflow.getHandle(workflowId);
  const { pendingActivities, pendingChildren, pendingWorkflowTask } = (await handle.describe()).raw;
  const { events } = await handle.fetchHistory();
  const lastEvents = events?.slice(-30);
  return JSON.stringify({ workflowId, pendingActivities, pendingChildren, pendingWorkflowTask, lastEvents });
}

function inWords(counts: ReadonlyMap<string, number>): string {
  return [...counts]
    .map(([name, count]) => `${count} ${name}`)
    .sort()
    .join(', ');
}

function say(line: string): void {
  process.stderr.write(`[batch soak] ${line}\n`);
}
