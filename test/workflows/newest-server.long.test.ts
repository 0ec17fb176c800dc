import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { QUERY_PROGRESS } from '../../src/core/names';
import type { FollowUpProgress } from '../../src/core/result';
import { eventually } from '../harness/eventually';
import { BY_RESPONSE, ENDLESS } from '../harness/following';
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
  const other = await follow(ENDLESS, { polling: SELDOM });
  await other.reached({ operation: 'get' }, { atLeast: 4 });
  await other.handle.terminate();
}

/** Pauses a workflow for a while, as `temporal workflow pause` and `unpause` do. */
async function pauseAwhile({ client, workflowId }: WorkflowHandle, meanwhile?: () => unknown) {
  const { namespace } = client.options;
  const asked = () => ({
    namespace,
    workflowId,
    requestId: randomUUID(),
    reason: 'a test',
    identity: 'a test',
  });
  const status = async () => (await client.getHandle(workflowId).describe()).status.name;
  await client.workflowService.pauseWorkflowExecution(asked());
  await eventually('it is paused', async () => (await status()) === 'PAUSED');
  meanwhile?.();
  await untilOthersAreRead();
  expect(await status()).toBe('PAUSED');
  await client.workflowService.unpauseWorkflowExecution(asked());
}

// Proves T5.
it.concurrent('a POST is not cancelled when its workflow closes', async () => {
  const held = { name: 'hold', operation: 'message', parameters: { processed: 'after' } } as const;
  const following = await follow({}, {}, held);
  await following.reached({ operation: 'message' });
  await following.handle.terminate();
  await untilOthersAreRead();
  following.release();
  const answered = { operation: 'message', ending: 'answered' } as const;
  expect(await following.reached(answered)).toMatchObject([{ processed: true, status: 200 }]);
});

describe('while it is paused', () => {
  const completedOnce = { status: 'completed', delivery: BY_RESPONSE, posts: [true] };

  // Proves T5.
  it.concurrent('a follow-up whose POST is under way keeps the answer', async () => {
    const held = { name: 'hold', operation: 'message', parameters: { processed: 'before' } } as const;
    const following = await follow({}, { polling: SELDOM }, held);
    await following.reached({ operation: 'message' });
    await pauseAwhile(following.handle, () => following.release());
    expect(await following.ending()).toMatchObject(completedOnce);
  });

  // Proves T5.
  it.concurrent('a follow-up that one activity polls is polled on', async () => {
    const following = await follow(ENDLESS, { polling: { ...SELDOM, timerPolls: 0 } });
    await following.progressWhen(({ phase }) => phase === 'watching');
    await pauseAwhile(following.handle);
    following.changeJob({ status: 'completed' });
    expect(await following.ending()).toMatchObject(completedOnce);
  });

  // Proves T5.
  it.concurrent('a batch loses nothing', async () => {
    const batch = await newBatch(3, ENDLESS, { polling: SELDOM });
    await batch.startUntilSent(2, { concurrency: 2 });
    await batch.progressWhen((progress) => progress.open === 2);
    const [first = ''] = await batch.itemIds();
    const item = batch.environment.client.workflow.getHandle(first);
    const watches = async () => (await item.query<FollowUpProgress>(QUERY_PROGRESS)).phase === 'watching';
    await eventually('the item is watched', watches);
    await pauseAwhile(batch.workflow);
    batch.endTurns();
    await batch.sent(3);
    const summary = { settled: 3, byStatus: { completed: 3 } };
    expect(await batch.finish()).toMatchObject({ state: 'done', summary });
    expect(batch.messages()).toEqual([1, 1, 1]);
  });
});
