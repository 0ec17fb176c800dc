import { expect, it } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { BatchOfTest } from '../../harness/batch-of-test';
import { Environment } from '../../harness/environment';
import { eventually } from '../../harness/eventually';
import { ENDLESS } from '../../harness/following';
import { eventsOf } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open, follow } = sharedEnvironment();

/** An activity of a follow-up as it was scheduled, by its history. */
function scheduled(handle: WorkflowHandle, type: 'sendMessage' | 'getJob' | 'pollJob') {
  const all = async () => (await eventsOf(handle)).map((event) => event.activityTaskScheduledEventAttributes);
  return eventually(`${type} is scheduled`, async () =>
    (await all()).find((attributes) => attributes?.activityType?.name === type),
  );
}

it.concurrent('limits of each project hold for its sends and reads, by its own fairness key', async () => {
  const { handle, key } = await follow(ENDLESS);
  const priority = { fairnessKey: key.projectId };
  for (const type of ['sendMessage', 'getJob', 'pollJob'] as const)
    expect((await scheduled(handle, type)).priority).toMatchObject(priority);
  await handle.terminate();
});

// Proves A4.
it.concurrent('a project that the service wants quiet is left alone by every follow-up', async () => {
  const environment = await open();
  const parameters = { retryAfter: 3_600 };
  const first = await follow({}, {}, { name: 'http-429', operation: 'message', parameters });
  await first.progressWhen(({ lastAnswer }) => lastAnswer?.includes('429') === true);
  const second = await environment.follow({ projectId: first.request.projectId });
  const { lastAnswer } = await second.progressWhen((progress) => progress.lastAnswer !== null);
  expect(lastAnswer).toMatch(/^project cooling down until \d{4}-.*Z, as the service asked$/);
  await Promise.all([first.handle.terminate(), second.handle.terminate()]);
  expect(environment.sandbox.journal.entries(second.key)).toEqual([]);
});

/** On queues of its own, as limits are of queues. */
async function withReadsLimitedTo(
  readsTotal: '100/s' | '1/h',
  test: (environment: Environment) => Promise<void>,
) {
  const environment = await Environment.open();
  await environment.followUps.limits.set({ readsTotal });
  await test(environment).finally(() => environment.close());
}

it('limits may hold a read up for ten minutes, and not beyond the deadline by more than a minute', () =>
  withReadsLimitedTo('100/s', async (environment) => {
    const longestReadSeconds = async (deadline: '24h' | '61s') => {
      const { handle } = await environment.follow(ENDLESS, { deadline });
      const { scheduleToCloseTimeout } = await scheduled(handle, 'getJob');
      await handle.terminate();
      return Number(scheduleToCloseTimeout?.seconds);
    };
    expect(await longestReadSeconds('24h')).toBe(602);
    expect(await longestReadSeconds('61s')).toBeLessThanOrEqual(63);
  }));

// Proves B4.
it('limits on reads hold no batch, which asks the Temporal server only', () =>
  withReadsLimitedTo('1/h', async (environment) => {
    const batch = new BatchOfTest(environment).addMany(3, ENDLESS);
    await batch.start({ concurrency: 1 });
    for (const index of [0, 1, 2]) {
      await batch.sent(index + 1);
      await (await batch.itemHandle(index)).terminate();
    }
    expect(await batch.handle.result()).toMatchObject({ state: 'done', summary: { settled: 3 } });
  }));
