import { setMaxListeners } from 'node:events';
import { expect, it } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { seededRandom } from '../../sandbox/random';
import type { FollowUpRequest } from '../../src/contract/request';
import { TestBatch, LARGE_PROMPT } from '../harness/test-batch';
import { eventually } from '../../tools/lib/eventually';
import { collectWorkflowIds } from '../harness/workflow-ids';
import { ProcessEnvironment } from '../harness/process-environment';
import { resetToTask, workflowTasks } from '../harness/reset';
import { RestartableServer } from '../harness/restartable-server';
import { MAX_STALENESS, FAULTS, HTTP_TIMEOUT, Machines, runRandomOperations } from '../harness/soak/chaos';

/**
 * The seed decides the items and the random choices. `FOLLOW_UP_SOAK_SEED` sets another seed. The order of the events also depends
 * on the machine, so that a seed does not repeat a run exactly.
 */
const SEED = Number(process.env.FOLLOW_UP_SOAK_SEED ?? 1);
const random = seededRandom(SEED);
const oneOf = <T>(...choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T;

const ITEMS = 60;
/** Returns a concurrency of at least half of the items, so that many items run during the faults. */
const randomConcurrency = () => ITEMS / 2 + Math.floor((random() * ITEMS) / 2);

/** After this time, the test injects no further faults and operations. The deadline then ends every follow-up that still runs. */
const CHAOS_MS = 30_000;

/**
 * The timeout covers the start of the Temporal server and the first workers, and the time of the faults. The rest is for a reset at
 * the end of the faults and for a few runs of the batch.
 */
const TIMEOUT_MS = 600_000;

/**
 * A turn lasts at most 6 s, so that several polls find it active. `reconcileTimeout` is as long as the longest turn. A send without a
 * report times out after 29 s (twice the HTTP timeout of 7 s, and 15 s).
 */
const TIMES = {
  deadline: '70s',
  polling: { initial: '2s', growth: 0.2, maximum: '5s', jitter: 0.2 },
  reconcileTimeout: '6s',
  prLinkTimeout: '3s',
  maxStaleness: MAX_STALENESS,
} as const;

// Proves W9, B1.
it(
  'with random faults and operations, the 60 follow-ups of a batch end with correct receipts; no message is sent more often than allowed, and no worker exits by itself',
  () =>
    RestartableServer.with((server) => {
      const options = {
        address: server.address,
        sandbox: { seed: SEED, messagesPerHour: null },
        env: { AGENT_API_TIMEOUT: HTTP_TIMEOUT },
      };
      return ProcessEnvironment.with(options, (environment) => {
        const machines = new Machines(environment, server, random);
        return Promise.race([expectNoViolation(environment, machines), machines.died]);
      });
    }),
  TIMEOUT_MS,
);

async function expectNoViolation(environment: ProcessEnvironment, machines: Machines): Promise<void> {
  const { sandbox, client, taskQueue } = environment;
  const batch = newBatch(environment);
  const { handle } = batch;
  const items = await batch.itemIds();
  for (const fault of FAULTS) sandbox.setFault(fault);
  await machines.start();
  await batch.start({ concurrency: randomConcurrency() });
  const stop = AbortSignal.timeout(CHAOS_MS);
  setMaxListeners(0, stop);
  const operations = { ...followUpOperations(items, environment), ...batchOperations(batch) };
  const [done] = await Promise.all([runRandomOperations(operations, random, stop), machines.run(stop)]);
  await eventually('the batch is done', async () => {
    // The batch may be paused.
    await handle.resume().catch(() => undefined);
    await batch.start({ concurrency: ITEMS });
    await handle.result();
    return (await handle.progress()).state === 'done';
  });
  // The chunks of a batch that was never started again wait for a year, so the query excludes them.
  const query = `TaskQueue = '${taskQueue}' AND ExecutionStatus = 'Running' AND WorkflowType != 'followUpBatchItems'`;
  const until = (ids: readonly string[]) => ids.length === 0;
  await eventually('every workflow ends', () => collectWorkflowIds(client.workflow.list({ query })), {
    until,
  });
  process.stderr.write(`[soak] ${JSON.stringify({ seed: SEED, ...machines.counts, done })}\n`);
  expect(await findViolations(batch, items)).toEqual([]);
  // The number of processed messages depends on the moments of the cancellations.
  expect(sandbox.journal.entries({ processed: true })).not.toEqual([]);
}

/** Creates a batch in which each item has its own job. Every tenth item has the job of the item before it. */
function newBatch(environment: ProcessEnvironment): TestBatch {
  const batch = new TestBatch(environment, 'soak');
  let key = { projectId: '', jobId: '' };
  for (let item = 0; item < ITEMS; item += 1) {
    const status = oneOf('completed', 'completed', 'completed', 'failed', 'active', 'archived');
    const durationMs = Math.round(random() < 0.1 ? 50 : 500 + 5_500 * random());
    const outcome = oneOf('pull-request', 'pull-request', 'new-pull-request', 'no-change', 'failed');
    const options: Partial<FollowUpRequest> = {
      ...TIMES,
      prompt: `item ${item}. ${item % 10 === 0 ? LARGE_PROMPT.slice(0, 240 * 1_024) : ''}`,
      onUnknownDelivery: oneOf('fail', 'fail', 'assume-delivered', 'resend'),
      whenActive: oneOf('send', 'wait', 'wait', 'reject'),
    };
    if (item % 10 === 9) batch.addRequest(key, options);
    else
      key = batch.addItem(
        { projectId: `project-${item % 10}`, status, turn: { durationMs, outcome } },
        options,
      );
  }
  return batch;
}

function followUpOperations(items: readonly string[], { client, followUps }: ProcessEnvironment) {
  const any = () => followUps.getHandle(oneOf(...items));
  const workflow = () => client.workflow.getHandle(oneOf(...items));
  const reset = () => resetAnywhere(workflow());
  return {
    pollNow: () => any().pollNow(),
    extend: () => any().extendDeadline('20s'),
    cancel: () => any().cancel(),
    terminate: () => workflow().terminate(),
    ...{ reset, resetAnother: reset },
  };
}

function batchOperations(batch: TestBatch) {
  const { handle, workflow } = batch;
  const start = () => batch.start({ concurrency: randomConcurrency() });
  const stop = () =>
    oneOf<() => Promise<unknown>>(
      () => handle.cancel(),
      () => handle.cancel({ cancelRunning: random() < 0.3 }),
      () => workflow.terminate(),
      () => resetAnywhere(workflow),
    )();
  return {
    start,
    stopAndStart: () =>
      stop()
        .then(() => handle.result())
        .then(start),
    retry: () => handle.retry(),
    pauseAndResume: () => handle.pause().then(() => handle.resume()),
    setConcurrency: () => handle.setConcurrency(randomConcurrency()),
    results: () => handle.listResults(),
  };
}

/** Resets a workflow to a random workflow task. Early tasks are more likely, because the message is sent there. */
async function resetAnywhere(handle: WorkflowHandle): Promise<void> {
  const tasks = await workflowTasks(handle);
  await resetToTask(handle, tasks[Math.floor(random() ** 2 * tasks.length)]);
}

/** Compares the results of a batch with the agent service's journal, and returns the violations. The simulation checks stricter rules. */
async function findViolations(batch: TestBatch, items: readonly string[]): Promise<string[]> {
  const results = new Map((await batch.handle.listResults()).map((result) => [result.workflowId, result]));
  return items.flatMap((id, index) => {
    const { projectId = '', jobId = '', prompt, onUnknownDelivery } = batch.requests[index] ?? {};
    const result = results.get(id);
    if (result === undefined) return [`${id}: the item has no result`];
    const posts = batch.posts({ projectId, jobId }).filter((post) => post.prompt?.text === prompt);
    const isProcessed = posts.some((post) => post.processed);
    // Only a response with a 4xx status proves that the message was not processed and may be sent again.
    const isRejection = (status: number | null) => status !== null && status >= 400 && status < 500;
    const sent = posts.filter(({ status, ending }) => !(isRejection(status) && ending === 'answered'));
    const allowed = onUnknownDelivery === 'resend' ? 2 : 1;
    const { outcome, delivery, evidence } = result;
    const violations: string[] = [];
    if (sent.length > allowed)
      violations.push(`${sent.length} POSTs may have been processed, not ${allowed}`);
    if (isProcessed && (delivery === 'not-sent' || delivery === 'rejected'))
      violations.push(`the verdict is ${delivery}, but the message was processed`);
    if (['completed', 'failed', 'archived'].includes(outcome)) {
      const { turns } = batch.environment.sandbox.job({ projectId, jobId });
      const ownTurns = turns.filter(({ number }) => posts.some((post) => post.turn === number));
      if (delivery !== 'accepted' || evidence === null)
        violations.push('the result has no accepted delivery or no evidence');
      if (!isProcessed && onUnknownDelivery === 'fail')
        violations.push('the item has a result, but its message was never processed');
      if (ownTurns.some(({ endedAt }) => endedAt === null || endedAt > Date.parse(result.endedAt)))
        violations.push('the item has a result from before the end of the turn');
    }
    return violations.map(
      (violation) => `${violation}: ${JSON.stringify({ result, posts: posts.length, onUnknownDelivery })}`,
    );
  });
}
