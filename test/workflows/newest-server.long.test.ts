import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { eventually } from '../../tools/lib/eventually';
import { ACCEPTED_BY_RESPONSE, ENDLESS_TURN } from '../harness/follow-up-under-test';
import { sharedEnvironment } from '../harness/shared-environment';

/**
 * What a server can do besides, off by default: pause workflows (1.30 and later), and tell workers to cancel the activities
 * of a workflow that has closed (1.32).
 */
const DYNAMIC_CONFIG = {
  'frontend.WorkflowPauseEnabled': true,
  'frontend.WorkerCommandsEnabled': true,
  'system.enableCancelActivityWorkerCommand': true,
};

/** A request may be held for as long as a test takes, however busy the machine is. */
const httpTimeoutMs = 120_000;

const { follow, newBatch } = sharedEnvironment({ dynamicConfig: DYNAMIC_CONFIG, httpTimeoutMs });

/**
 * Reads so rare that no workflow is paused while a workflow task of it is scheduled and not started. The SDK's core can't
 * replay that (measured with 1.24: "WorkflowTaskMachine in state Scheduled says the transition is invalid").
 */
const SELDOM = { initial: '2s', growth: 0, maximum: '2s', jitter: 0 } as const;

/** Waits for as long as another follow-up is read three times: longer than the waits of a test's, and than three looks of a page. */
async function untilOthersAreRead(): Promise<void> {
  const other = await follow(ENDLESS_TURN, { polling: SELDOM });
  await other.waitForRequest({ operation: 'get' }, { atLeast: 4 });
  await other.handle.terminate();
}

/** Pauses a workflow for a while, as `temporal workflow pause` and `unpause` do. */
async function pauseAwhile({ client, workflowId }: WorkflowHandle, meanwhile?: () => unknown) {
  const { namespace } = client.options;
  const asked = () => ({
    ...{ namespace, workflowId, requestId: randomUUID() },
    ...{ reason: 'a test', identity: 'a test' },
  });
  const status = async () => (await client.getHandle(workflowId).describe()).status.name;
  await client.workflowService.pauseWorkflowExecution(asked());
  await eventually('it is paused', async () => (await status()) === 'PAUSED');
  meanwhile?.();
  await untilOthersAreRead();
  expect(await status()).toBe('PAUSED');
  await client.workflowService.unpauseWorkflowExecution(asked());
}

const HELD = { name: 'hold', operation: 'message' } as const;

// Proves T5.
it.concurrent('a POST is not cancelled when its workflow closes', async () => {
  const following = await follow({}, {}, { ...HELD, parameters: { processed: 'after' } });
  await following.waitForRequest({ operation: 'message' });
  await following.handle.terminate();
  await untilOthersAreRead();
  following.releaseHeldRequests();
  const answered = { operation: 'message', ending: 'answered' } as const;
  expect(await following.waitForRequest(answered)).toMatchObject([{ processed: true, status: 200 }]);
});

// Proves T5.
it.concurrent.each([
  ['whose POST is under way keeps the answer', [{ ...HELD, parameters: { processed: 'before' } }]],
  ['that one activity polls is polled on', []],
] as const)('while it is paused, a follow-up %s', async (_, faults) => {
  const following = await follow(ENDLESS_TURN, { polling: { ...SELDOM, timerPolls: 0 } }, ...faults);
  if (faults.length > 0) await following.waitForRequest({ operation: 'message' });
  else await following.waitForProgress(({ phase }) => phase === 'watching');
  await pauseAwhile(following.handle, () => following.releaseHeldRequests());
  following.changeJob({ status: 'completed' });
  const once = { status: 'completed', delivery: ACCEPTED_BY_RESPONSE, posts: [true] };
  expect(await following.outcomeSummary()).toMatchObject(once);
});

// Proves T5.
it.concurrent('while it is paused, a batch loses nothing', async () => {
  const batch = await newBatch(3, ENDLESS_TURN, { polling: SELDOM });
  await batch.startUntilSent(2, { concurrency: 2 });
  await batch.waitForProgress((progress) => progress.open === 2);
  await pauseAwhile(batch.workflow);
  batch.endTurns();
  await batch.waitUntilSent(3);
  const summary = { ended: 3, byStatus: { completed: 3 } };
  expect(await batch.finish()).toMatchObject({ state: 'done', summary });
  expect(batch.messageCounts()).toEqual([1, 1, 1]);
});
