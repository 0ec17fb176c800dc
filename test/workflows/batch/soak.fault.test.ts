import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { WorkflowNotFoundError } from '@temporalio/client';
import { hasCode, type ItemEnd } from '../../../src/client';
import { seededRandom } from '../../../sandbox/random';
import type { BatchOfTest } from '../../harness/batch-of-test';
import { eventually } from '../../harness/eventually';
import { ProcessEnvironment } from '../../harness/process-environment';
import { listed } from '../../harness/listed';
import { FORGETFUL, RestartableServer, throughRestarts } from '../../harness/restartable-server';
import { BatchActions, MOST_OPEN, soakBatch } from '../../harness/soak/batch-actions';
import { Machines } from '../../harness/soak/machines';
import { counted, say, SEED } from '../../harness/soak/say';

const BATCHES = 2;

/** Each does one thing after the other; some take long while no worker answers. */
const PEOPLE = 2;

/** How long people and machines do things at random, and from one deed of people to the next at most. */
const CHAOS_MS = 20_000;
const MAX_PAUSE_MS = 400;

/** Longer than an item takes after the chaos, and than its batch stands still if a worker was killed. */
const PATIENCE_MS = 90_000;

const EVERYTHING_ENDS_MS = 200_000;

/** The chaos, each batch run to its end a few times, and the start of a server. */
const LIMIT_MS = 600_000;

// Proves B1.
it(
  'whatever people and machines do to batches: no message is processed twice, no end lies, and every workflow ends',
  async () => {
    say(`FOLLOW_UP_SOAK_SEED=${SEED}`);
    const options = { sandbox: { seed: SEED, messagesPerHour: null } };
    await RestartableServer.with(
      (server) =>
        ProcessEnvironment.with({ ...options, address: server.address }, async (environment) => {
          const { found, machines } = await soak(environment, server);
          expect(found).toEqual([]);
          expect(machines.died).toEqual([]);
          expect(machines.counts.kill).toBeGreaterThan(0);
        }),
      FORGETFUL,
    );
  },
  LIMIT_MS,
);

async function soak(environment: ProcessEnvironment, server: RestartableServer) {
  const random = seededRandom(SEED);
  const actions = new BatchActions(random);
  const batches = Array.from({ length: BATCHES }, (_, index) =>
    soakBatch(environment, `soak-${index}`, random),
  );
  const chaosOver = AbortSignal.timeout(CHAOS_MS);
  const machines = new Machines(environment, server, seededRandom(SEED + 1));
  const running = machines.run(chaosOver);
  for (const batch of batches) await throughRestarts(() => actions.start(batch));
  const done: string[] = [];
  const person = async () => {
    while (!chaosOver.aborted) {
      const batch = batches[Math.floor(random() * batches.length)];
      if (batch !== undefined) done.push(await actions.doOne(batch));
      await sleep(random() * MAX_PAUSE_MS);
    }
  };
  const watching = watch(batches, actions, chaosOver);
  await Promise.all([running, ...Array.from({ length: PEOPLE }, person)]);
  const tooMany = await watching;
  const told = await Promise.all(batches.map((batch) => endsOf(actions, batch)));
  await everyWorkflowEnds(environment);
  const ends = told.flat().map(({ outcome, delivery }) => `${outcome} (${delivery ?? 'nobody can tell'})`);
  say(`${JSON.stringify(machines.log.counts)}; ${counted(done)}`);
  say(`ends: ${counted(ends)}`);
  machines.dismiss();
  const { unprotected } = actions;
  if (unprotected.size > 0) say(`deleted, and started by another program: ${[...unprotected].join(', ')}`);
  const lied = await Promise.all(batches.map((batch, index) => lies(batch, told[index] ?? [], unprotected)));
  const found = [...lied.flat(), ...tooMany];
  if (found.length > 0) say(actions.deeds.join('\n'));
  return { found, machines: machines.log };
}

/** How far behind its store the server's list may be, and a restart of the server may take. */
const LIST_IS_RIGHT_WITHIN_MS = 3_000;

/** Whether more is open than any concurrency of a batch has allowed, or two of one job, by the server's own list. */
async function watch(
  batches: readonly BatchOfTest[],
  { resetItems }: BatchActions,
  stop: AbortSignal,
): Promise<string[]> {
  const found = new Set<string>();
  let before = new Set<string>();
  while (!stop.aborted) {
    const now = new Set<string>();
    for (const batch of batches) {
      const { batchId } = batch;
      const ids = await throughRestarts(() => batch.running());
      const jobs = ids.filter((id) => !resetItems.has(id)).map((id) => id.split(':').slice(0, 3).join(':'));
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
async function endsOf(actions: BatchActions, batch: BatchOfTest): Promise<readonly ItemEnd[]> {
  const { handle } = batch;
  try {
    for (;;) {
      const { state } = await handle.progress();
      if (state === 'completed') break;
      // It may be paused.
      if (state === 'running') await handle.resume().catch(() => undefined);
      await actions.start(batch);
      const ended = await Promise.race([handle.result(), sleep(PATIENCE_MS, null, { ref: false })]);
      if (ended === null) await batch.terminate().catch(unlessEnded);
    }
    return await throughRestarts(() => handle.settled());
  } catch (error) {
    if (hasCode(error, 'BATCH_FORGOTTEN')) return [];
    throw error;
  }
}

function unlessEnded(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

/** What is wrong with the ends of a batch, by the journal of the service. */
async function lies(
  batch: BatchOfTest,
  ends: readonly ItemEnd[],
  unprotected: ReadonlySet<string>,
): Promise<string[]> {
  const found: string[] = [];
  const endOf = new Map(ends.map((end) => [end.workflowId, end]));
  if (endOf.size !== ends.length) found.push(`${batch.batchId}: an item has two ends`);
  for (const [index, { projectId, jobId, prompt }] of batch.requests.entries()) {
    const { workflowId } = await batch.itemHandle(index);
    if (unprotected.has(workflowId)) continue;
    const posts = batch.posts({ projectId, jobId });
    const processed = posts.filter((post) => post.processed && post.prompt?.text === prompt).length;
    const { outcome = 'no end', delivery = null } = endOf.get(workflowId) ?? {};
    const isTrue =
      delivery === 'accepted'
        ? processed === 1
        : delivery === 'not-sent' || delivery === 'rejected'
          ? processed === 0
          : processed <= 1;
    if (!isTrue) found.push(`${workflowId}: processed ${processed} times, ${outcome} ${String(delivery)}`);
  }
  return found;
}

async function everyWorkflowEnds(environment: ProcessEnvironment): Promise<void> {
  const { client, taskQueue } = environment;
  const query = `TaskQueue = '${taskQueue}' AND ExecutionStatus = 'Running'`;
  // A part of the items of a batch that was never started again waits for a year.
  const running = async () =>
    (await listed(client.workflow.list({ query }))).filter((id) => !id.startsWith('follow-up-batch-items:'));
  const until = (ids: readonly string[]) => ids.length === 0;
  await eventually('every workflow ends', running, { timeoutMs: EVERYTHING_ENDS_MS, until });
}
