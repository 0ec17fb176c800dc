import { expect, it } from '@jest/globals';
import { fetchFailure, UNKNOWN_DELIVERY } from '../../harness/follow-up-under-test';
import { eventsOf, type HistoryEvent, resetToTask, workflowTasks } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open, follow } = sharedEnvironment({ skipsTime: true });

/**
 * Runs a follow-up with the default options to a job whose turn ends at the given read. Returns the number of polls and of events,
 * without the events of the clock that skips time.
 */
async function costOf(reads: number) {
  const environment = await open();
  const request = environment.newRequest({ turn: { reads } });
  const handle = await environment.followUps.start(request);
  const { receipt } = await handle.result();
  const events = await eventsOf(environment.client.workflow.getHandle(handle.workflowId));
  const isCounted = (event: HistoryEvent) =>
    !Object.keys(event).some((field) => /TimeSkipping.*Attributes$/.test(field));
  const counted = events.filter(isCounted);
  // If a local activity takes seconds on a busy machine, the SDK extends the workflow task with another one, which has three events.
  const extensions = counted.filter(
    (event, index) =>
      event.workflowTaskScheduledEventAttributes && counted[index - 1]?.workflowTaskCompletedEventAttributes,
  );
  return { polls: receipt.polls, events: counted.length - 3 * extensions.length };
}

/** The maximum includes two polls with a timer each, and `pollJob` (docs/performance.md). */
const MAX_EVENTS = 45;

// Proves L3.
it('a follow-up with any number of polls has at most 45 events, because polls of an unchanged job add no events', async () => {
  const [short, long, longer] = await Promise.all([costOf(4), costOf(60), costOf(90)]);
  expect([short.polls, long.polls, longer.polls]).toEqual([4, 60, 90]);
  expect([short.events, longer.events]).toEqual([long.events, long.events]);
  expect(long.events).toBeLessThanOrEqual(MAX_EVENTS);
});

// Proves T2.
it('after a reset to the last workflow task, the receipt and the search attribute report an unknown delivery', async () => {
  const fault = { name: 'status', parameters: { code: 403 }, operation: 'get' } as const;
  const following = await follow({}, {}, fault);
  expect((await following.failure()).type).toBe('FollowUpRejected');
  const resetRun = await resetToTask(following.handle, (await workflowTasks(following.handle)).at(-1));
  const { type, details } = await fetchFailure(resetRun);
  expect(details.receipt.delivery).toEqual(UNKNOWN_DELIVERY);
  const { typedSearchAttributes } = await resetRun.describe();
  const outcome = typedSearchAttributes.get({ name: 'FollowUpOutcome', type: 'KEYWORD_LIST' });
  expect(outcome).toEqual([type, 'unknown']);
});
