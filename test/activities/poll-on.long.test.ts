import { describe, expect, it } from '@jest/globals';
import { eventually } from '../harness/eventually';
import { ENDLESS, type Following } from '../harness/following';
import { pendingRead, SOON } from '../harness/pending-poll';
import { activities } from '../harness/reset';
import { sharedEnvironment } from '../harness/shared-environment';

/** Both ways in which one activity polls on; whatever is counted must be the same. */
const GEARS = [
  ['in the process of its worker', sharedEnvironment()],
  ['by its own retries', sharedEnvironment({ inProcessPolls: 0 })],
] as const;

/** One read by a timer, one by the activity five seconds later, and the next one after a minute. */
const SLOW = { initial: '500ms', growth: 10, maximum: '10m', jitter: 0, timerPolls: 1 } as const;

/** Waits until so many reads (the look before the send too) were answered, and the activity that polls is pending. */
async function untilPolled(following: Following, gets: number): Promise<Following> {
  await following.reached({ operation: 'get', ending: 'answered' }, { atLeast: gets });
  await eventually('a pending poll', () => pendingRead(following));
  return following;
}

describe('a follow-up that is polled by one activity', () => {
  // Proves L3.
  it.concurrent.each(GEARS)('%s has every answer counted', async (_, { follow }) => {
    const following = await untilPolled(await follow(ENDLESS, { polling: SOON }), 6);
    following.changeJob({ status: 'failed' });
    const { evidence, polls, observed } = (await following.result()).followUp;
    expect(evidence).toBe('seen-active');
    expect(polls).toBe(following.gets() - 1);
    expect(observed).toEqual({ active: polls - 1, failed: 1 });
    // The send with its look, two single reads.
    expect(await activities(following.handle)).toEqual(['sendMessage', 'getJob', 'getJob', 'pollJob']);
  });

  // Proves L4.
  it.concurrent.each(GEARS)('%s ends by a pollNow that shows a change', async (_, { follow }) => {
    const following = await untilPolled(await follow(ENDLESS, { polling: SLOW }), 3);
    following.changeJob({ status: 'completed', prLink: 'https://example.test/pull/2' });
    const progress = await following.update('pollNow');
    expect(progress).toMatchObject({ polls: 3, observed: { active: 2, completed: 1 } });
    const { prLink, followUp } = await following.result();
    expect(prLink).toBe('https://example.test/pull/2');
    expect(followUp.polls).toBe(following.gets() - 1);
  });

  // Proves L4.
  it.concurrent.each(GEARS)('%s and cancelled has every answer in its receipt', async (_, { follow }) => {
    const following = await untilPolled(await follow(ENDLESS, { polling: SLOW }), 3);
    await following.handle.cancel();
    const { polls, observed } = await following.receiptOfCancelled();
    expect(polls).toBe(following.gets() - 1);
    expect(observed).toEqual({ active: polls });
  });
});
