import { expect, it } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { eventually } from '../../../tools/lib/eventually';
import { ENDLESS_TURN } from '../../harness/follow-up-under-test';
import { eventsOf } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

// The timeout of a read includes the HTTP timeout.
const { open, follow, newBatch } = sharedEnvironment({ httpTimeoutMs: 2_000 });

/** Returns the event that scheduled the first activity of this type, from the history of its workflow. */
function scheduled(handle: WorkflowHandle, type: 'sendMessage' | 'getJob' | 'pollJob' | 'runItems') {
  const all = async () => (await eventsOf(handle)).map((event) => event.activityTaskScheduledEventAttributes);
  return eventually(`${type} is scheduled`, async () =>
    (await all()).find((attributes) => attributes?.activityType?.name === type),
  );
}

it.concurrent.each([
  ['24h', 602, 602],
  ['61s', 63, 1],
] as const)(
  'activities of a follow-up have the project as fairness key and run on the read or send task queue; with the deadline %s, getJob times out after at most %d s',
  async (deadline, maxSeconds, minSeconds) => {
    const { handle, key } = await follow(ENDLESS_TURN, { deadline });
    const { taskQueues } = await open();
    const queues = { sendMessage: taskQueues.send, getJob: taskQueues.read, pollJob: taskQueues.read };
    // With the short deadline, `pollJob` may never start.
    for (const type of [
      'sendMessage',
      'getJob',
      ...(deadline === '24h' ? (['pollJob'] as const) : []),
    ] as const)
      expect(await scheduled(handle, type)).toMatchObject({
        priority: { fairnessKey: key.projectId },
        taskQueue: { name: queues[type] },
      });
    const { scheduleToCloseTimeout } = await scheduled(handle, 'getJob');
    expect(Number(scheduleToCloseTimeout?.seconds)).toBeLessThanOrEqual(maxSeconds);
    expect(Number(scheduleToCloseTimeout?.seconds)).toBeGreaterThanOrEqual(minSeconds);
    await handle.terminate();
  },
);

// Proves B4.
it.concurrent(
  'rate limits on reads do not delay a batch, because its activity runs on the workflow task queue',
  async () => {
    const batch = await newBatch(1);
    await batch.start();
    const { taskQueue } = await scheduled(batch.workflow, 'runItems');
    expect(taskQueue?.name).toBe(batch.environment.taskQueue);
    await batch.handle.result();
  },
);
