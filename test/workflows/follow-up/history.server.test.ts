import { expect, it } from '@jest/globals';
import { fetchFailure, UNKNOWN_DELIVERY } from '../../harness/follow-up-under-test';
import { eventsOf, type HistoryEvent, resetToTask, workflowTasks } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open, follow } = sharedEnvironment({ skipsTime: true });

/** With the default options, on a job whose turn ends with a given read. The events of the skipping clock do not count. */
async function costOf(reads: number) {
  const environment = await open();
  const request = environment.newRequest({ turn: { reads } });
  const handle = await environment.followUps.start(request);
  const { receipt } = await handle.result();
  const events = await eventsOf(environment.client.workflow.getHandle(handle.workflowId));
  const isCounted = (event: HistoryEvent) =>
    !Object.keys(event).some((field) => /TimeSkipping.*Attributes$/.test(field));
  return { polls: receipt.polls, events: events.filter(isCounted).length };
}

/** The two single reads, and `pollJob`: see docs/performance.md. */
const MAX_EVENTS = 45;

// Proves L3.
it('a follow-up of any number of polls has at most 45 events, and unchanged polls add none', async () => {
  const [short, long, longer] = await Promise.all([costOf(4), costOf(60), costOf(90)]);
  expect([short.polls, long.polls, longer.polls]).toEqual([4, 60, 90]);
  expect([short.events, longer.events]).toEqual([long.events, long.events]);
  expect(long.events).toBeLessThanOrEqual(MAX_EVENTS);
});

// Proves T2.
it('after a reset to its last workflow task, receipt and search attribute agree that the delivery is unknown', async () => {
  const fault = { name: 'status', parameters: { code: 403 }, operation: 'get' } as const;
  const following = await follow({}, {}, fault);
  expect((await following.failure()).type).toBe('FollowUpRejected');
  const again = await resetToTask(following.handle, (await workflowTasks(following.handle)).at(-1));
  const { type, details } = await fetchFailure(again);
  expect(details.receipt.delivery).toEqual(UNKNOWN_DELIVERY);
  const { typedSearchAttributes } = await again.describe();
  const outcome = typedSearchAttributes.get({ name: 'FollowUpOutcome', type: 'KEYWORD_LIST' });
  expect(outcome).toEqual([type, 'unknown']);
});
