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

/** What the items are like, unless this says another; the order in time is the machine's. */
const SEED = Number(process.env.FOLLOW_UP_SOAK_SEED ?? 1);
const random = seededRandom(SEED);
const oneOf = <T>(...choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T;

const ITEMS = 60;
/** More than half of them meet the chaos. */
const concurrency = () => ITEMS / 2 + Math.floor((random() * ITEMS) / 2);

/** Machines and people are left alone from here on, whatever still runs; then the deadline ends every follow-up. */
const CHAOS_MS = 30_000;

/** The chaos, a reset at its end, the batch run to its end a few times, and the start of a server and the first workers. */
const TIMEOUT_MS = 600_000;

/** Turns of up to 6 s are seen several times; `reconcileTimeout` outlasts one. A send that nobody reports is given up after 22 to 29 s. */
const TIMES = {
  deadline: '70s',
  polling: { initial: '2s', growth: 0.2, maximum: '5s', jitter: 0.2 },
  reconcileTimeout: '6s',
  prLinkTimeout: '3s',
  maxStaleness: MAX_STALENESS,
} as const;

// Proves W9, B1.
it(
  'a batch of sixty follow-ups, through what machines, services and people do: each ends, nothing is sent that was not allowed, no receipt lies, and no worker ends by itself',
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
  await batch.start({ concurrency: concurrency() });
  const stop = AbortSignal.timeout(CHAOS_MS);
  setMaxListeners(0, stop);
  const operations = { ...followUpOperations(items, environment), ...batchOperations(batch) };
  const [done] = await Promise.all([runRandomOperations(operations, random, stop), machines.run(stop)]);
  await eventually('the batch is done', async () => {
    // It may be paused.
    await handle.resume().catch(() => undefined);
    await batch.start({ concurrency: ITEMS });
    await handle.result();
    return (await handle.progress()).state === 'done';
  });
  // A part of the items of a batch that was never started again waits for a year.
  const query = `TaskQueue = '${taskQueue}' AND ExecutionStatus = 'Running' AND WorkflowType != 'followUpBatchItems'`;
  const until = (ids: readonly string[]) => ids.length === 0;
  await eventually('every workflow ends', () => collectWorkflowIds(client.workflow.list({ query })), {
    until,
  });
  process.stderr.write(`[soak] ${JSON.stringify({ seed: SEED, ...machines.counts, done })}\n`);
  expect(await findViolations(batch, items)).toEqual([]);
  // How many depends on when people have cancelled them.
  expect(sandbox.journal.entries({ processed: true })).not.toEqual([]);
}

/** Each follow-up has a job of its own, but for every tenth, which comes after the one before it. */
function newBatch(environment: ProcessEnvironment): TestBatch {
  const batch = new TestBatch(environment, 'soak');
  let key = { projectId: '', jobId: '' };
  for (let item = 0; item < ITEMS; item += 1) {
    const status = oneOf('completed', 'completed', 'completed', 'failed', 'active', 'archived');
    const durationMs = Math.round(random() < 0.1 ? 50 : 500 + 5_500 * random());
    const outcome = oneOf('pull-request', 'pull-request', 'new-pull-request', 'no-change', 'failed');
    const asked: Partial<FollowUpRequest> = {
      ...TIMES,
      prompt: `item ${item}. ${item % 10 === 0 ? LARGE_PROMPT.slice(0, 240 * 1_024) : ''}`,
      onUnknownDelivery: oneOf('fail', 'fail', 'assume-delivered', 'resend'),
      whenActive: oneOf('send', 'wait', 'wait', 'reject'),
    };
    if (item % 10 === 9) batch.addRequest(key, asked);
    else
      key = batch.addItem(
        { projectId: `project-${item % 10}`, status, turn: { durationMs, outcome } },
        asked,
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
  const start = () => batch.start({ concurrency: concurrency() });
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
    setConcurrency: () => handle.setConcurrency(concurrency()),
    results: () => handle.listResults(),
  };
}

/** To before a workflow task by chance, early ones above all: there a message is sent. */
async function resetAnywhere(handle: WorkflowHandle): Promise<void> {
  const tasks = await workflowTasks(handle);
  await resetToTask(handle, tasks[Math.floor(random() ** 2 * tasks.length)]);
}

/** What is wrong with the ends of a batch, by the service's journal. The simulation has the finer rules. */
async function findViolations(batch: TestBatch, items: readonly string[]): Promise<string[]> {
  const ends = new Map((await batch.handle.listResults()).map((end) => [end.workflowId, end]));
  return items.flatMap((id, index) => {
    const { projectId = '', jobId = '', prompt, onUnknownDelivery } = batch.requests[index] ?? {};
    const end = ends.get(id);
    if (end === undefined) return [`${id}: no end`];
    const posts = batch.posts({ projectId, jobId }).filter((post) => post.prompt?.text === prompt);
    const isProcessed = posts.some((post) => post.processed);
    // Only an answered refusal says for certain that the message was not processed, and that it may come again.
    const isRefused = (status: number | null) => status !== null && status >= 400 && status < 500;
    const sent = posts.filter(({ status, ending }) => !(isRefused(status) && ending === 'answered'));
    const allowed = onUnknownDelivery === 'resend' ? 2 : 1;
    const { outcome, delivery, evidence } = end;
    const violations: string[] = [];
    if (sent.length > allowed)
      violations.push(`${sent.length} POSTs may have been processed, not ${allowed}`);
    if (isProcessed && (delivery === 'not-sent' || delivery === 'rejected'))
      violations.push('it was processed');
    if (['completed', 'failed', 'archived'].includes(outcome)) {
      const ours = batch.environment.sandbox.job({ projectId, jobId }).turns;
      const turn = ours.filter(({ number }) => posts.some((post) => post.turn === number));
      if (delivery !== 'accepted' || evidence === null) violations.push('a result without evidence');
      if (!isProcessed && onUnknownDelivery === 'fail') violations.push('a result, and never processed');
      if (turn.some(({ endedAt }) => endedAt === null || endedAt > Date.parse(end.endedAt)))
        violations.push('a result before the end of the turn');
    }
    return violations.map(
      (violation) => `${violation}: ${JSON.stringify({ end, posts: posts.length, onUnknownDelivery })}`,
    );
  });
}
