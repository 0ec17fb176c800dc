import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { eventually } from '../../tools/lib/eventually';
import { ACCEPTED_BY_RESPONSE, ENDLESS_TURN } from '../harness/follow-up-under-test';
import { sharedEnvironment } from '../harness/shared-environment';

/**
 * By default, these features of the Temporal server are off. The first setting allows pausing workflows (server 1.30 and later). The
 * other two make the server request workers to cancel the activities of a closed workflow (server 1.32).
 */
const DYNAMIC_CONFIG = {
  'frontend.WorkflowPauseEnabled': true,
  'frontend.WorkerCommandsEnabled': true,
  'system.enableCancelActivityWorkerCommand': true,
};

/** A test may hold an HTTP request until its end, even on a busy machine. */
const httpTimeoutMs = 120_000;

const { follow, newBatch } = sharedEnvironment({ dynamicConfig: DYNAMIC_CONFIG, httpTimeoutMs });

/**
 * The interval is so long that no test pauses a workflow between the schedule and the start of a workflow task. sdk-core 1.24 can't
 * replay such a history.
 */
const RARE_POLLS = { initial: '2s', growth: 0, maximum: '2s', jitter: 0 } as const;

/** Waits until another follow-up has made three polls, which takes longer than every wait of the follow-up under test. */
async function waitForPollsOfAnother(): Promise<void> {
  const other = await follow(ENDLESS_TURN, { polling: RARE_POLLS });
  await other.waitForRequest({ operation: 'get' }, { atLeast: 4 });
  await other.handle.terminate();
}

/**
 * Pauses a workflow as `temporal workflow pause` does, calls `meanwhile`, waits for polls of another follow-up, and unpauses the
 * workflow.
 */
async function pauseAndUnpause({ client, workflowId }: WorkflowHandle, meanwhile?: () => unknown) {
  const { namespace } = client.options;
  const request = () => ({
    ...{ namespace, workflowId, requestId: randomUUID() },
    ...{ reason: 'a test', identity: 'a test' },
  });
  const status = async () => (await client.getHandle(workflowId).describe()).status.name;
  await client.workflowService.pauseWorkflowExecution(request());
  await eventually('the workflow is paused', async () => (await status()) === 'PAUSED');
  meanwhile?.();
  await waitForPollsOfAnother();
  expect(await status()).toBe('PAUSED');
  await client.workflowService.unpauseWorkflowExecution(request());
}

const HELD = { name: 'hold', operation: 'message' } as const;

// Proves T5.
it.concurrent('a POST in progress is not cancelled when its workflow is terminated', async () => {
  const following = await follow({}, {}, { ...HELD, parameters: { processed: 'after' } });
  await following.waitForRequest({ operation: 'message' });
  await following.handle.terminate();
  await waitForPollsOfAnother();
  following.releaseHeldRequests();
  const answered = { operation: 'message', ending: 'answered' } as const;
  expect(await following.waitForRequest(answered)).toMatchObject([{ processed: true, status: 200 }]);
});

// Proves T5.
it.concurrent.each([
  ['whose POST is in progress keeps the response', [{ ...HELD, parameters: { processed: 'before' } }]],
  ['with a pending pollJob is polled further', []],
] as const)('during a pause, a follow-up %s, and then returns its result', async (_, faults) => {
  const following = await follow(ENDLESS_TURN, { polling: { ...RARE_POLLS, timerPolls: 0 } }, ...faults);
  if (faults.length > 0) await following.waitForRequest({ operation: 'message' });
  else await following.waitForProgress(({ phase }) => phase === 'watching');
  await pauseAndUnpause(following.handle, () => following.releaseHeldRequests());
  following.changeJob({ status: 'completed' });
  const expected = { status: 'completed', delivery: ACCEPTED_BY_RESPONSE, posts: [true] };
  expect(await following.outcomeSummary()).toMatchObject(expected);
});

// Proves T5.
it.concurrent(
  'a batch that was paused and unpaused sends each message once and counts every item',
  async () => {
    const batch = await newBatch(3, ENDLESS_TURN, { polling: RARE_POLLS });
    await batch.startUntilSent(2, { concurrency: 2 });
    await batch.waitForProgress((progress) => progress.open === 2);
    await pauseAndUnpause(batch.workflow);
    batch.endTurns();
    await batch.waitUntilSent(3);
    const summary = { ended: 3, byStatus: { completed: 3 } };
    expect(await batch.finish()).toMatchObject({ state: 'done', summary });
    expect(batch.messageCounts()).toEqual([1, 1, 1]);
  },
);
