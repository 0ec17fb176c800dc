import { expect, it } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { eventually } from '../../../tools/lib/eventually';
import { ENDLESS_TURN } from '../../harness/follow-up-under-test';
import { eventsOf } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open, follow, newBatch } = sharedEnvironment();

/** An activity as it was scheduled, by the history of its workflow. */
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
  'limits hold for each project, and no read of one with a deadline of %s for more than %d s',
  async (deadline, most, least) => {
    const { handle, key } = await follow(ENDLESS_TURN, { deadline });
    const { taskQueues } = await open();
    const queues = { sendMessage: taskQueues.send, getJob: taskQueues.read, pollJob: taskQueues.read };
    // Before a short deadline the activity that polls on may not begin.
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
    expect(Number(scheduleToCloseTimeout?.seconds)).toBeLessThanOrEqual(most);
    expect(Number(scheduleToCloseTimeout?.seconds)).toBeGreaterThanOrEqual(least);
    await handle.terminate();
  },
);

// Proves B4.
it.concurrent('limits on reads hold no batch: its activity has another queue', async () => {
  const batch = await newBatch(1);
  await batch.start();
  const { taskQueue } = await scheduled(batch.workflow, 'runItems');
  expect(taskQueue?.name).toBe(batch.environment.taskQueue);
  await batch.handle.result();
});
