import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { Receipt } from '../../src/core/result';
import type { FollowUpRequest } from '../../src/core/request';
import { eventually } from '../harness/eventually';
import { ENDLESS, type Following } from '../harness/following';
import { pendingRead, SOON } from '../harness/pending-poll';
import { activities } from '../harness/reset';
import { sharedEnvironment } from '../harness/shared-environment';

/** Both ways in which one activity polls on; whatever is counted must be the same. */
const GEARS = [
  { gear: 'in the process of its worker', inProcessPolls: 1_000 },
  { gear: 'by its own retries', inProcessPolls: 0 },
];

/** One read by a timer, one by the activity two seconds later, and then intervals of six seconds and more. */
const SLOW = { initial: '500ms', growth: 3, maximum: '10m', jitter: 0, timerPolls: 1 } as const;

/** Waits until so many reads (the look before the send too) were answered, and the activity that polls is pending. */
async function untilPolled(following: Following, gets: number): Promise<Following> {
  await following.reached({ operation: 'get', ending: 'answered' }, { atLeast: gets });
  await eventually('a pending poll', () => pendingRead(following));
  return following;
}

/** Ends the turn, and expects that every read but the look before the send was counted. */
async function expectAllCounted(following: Following): Promise<Receipt> {
  following.changeJob({ status: 'failed' });
  const { followUp } = await following.result();
  expect(followUp.polls).toBe(following.gets() - 1);
  return followUp;
}

describe.each(GEARS)('the long tail, $gear', ({ inProcessPolls }) => {
  const { follow } = sharedEnvironment({ inProcessPolls });
  const { follow: followWithLittlePatience } = sharedEnvironment({ inProcessPolls, pollLimitMs: 4_000 });
  const { follow: followWithSlowReads } = sharedEnvironment({ inProcessPolls, httpTimeoutMs: 9_000 });
  const MINUTE = { polling: SOON, deadline: '60s' } as const;

  it.concurrent('is polled by one activity, and every answer is counted', async () => {
    const following = await untilPolled(await follow(ENDLESS, { polling: SOON }), 6);
    const { evidence, polls, observed } = await expectAllCounted(following);
    expect(evidence).toBe('seen-active');
    expect(polls).toBeGreaterThanOrEqual(6);
    expect(observed).toEqual({ active: polls - 1, failed: 1 });
    // The send with its look, two single reads.
    expect(await activities(following.handle)).toEqual(['sendMessage', 'getJob', 'getJob', 'pollJob']);
  });

  it.concurrent('keeps the cadence of the turn’s age', async () => {
    const polling = { initial: '1s', growth: 0.5, maximum: '1m', jitter: 0, timerPolls: 1 } as const;
    const following = await untilPolled(await follow(ENDLESS, { polling, deadline: '60s' }), 5);
    const [, ...times] = (await following.reached({ operation: 'get' })).map(({ time }) => Date.parse(time));
    // At an age of a the next read is due at 1.5 a; no read is early. The look before the send is before the turn's birth.
    const sentAt = Date.parse(following.posts()[0]?.time ?? '');
    const ages = times.map((time) => time - sentAt);
    const early = ages.slice(1).filter((age, index) => age < 1.45 * (ages[index] ?? 0));
    expect(ages.length).toBeGreaterThanOrEqual(4);
    expect(early).toEqual([]);
    await following.handle.terminate();
  });

  it.concurrent('absorbs and counts trouble, and comes back for what needs a decision', async () => {
    const following = await untilPolled(await follow(ENDLESS, MINUTE), 4);
    following.setFault({ name: 'http-503', operation: 'get', times: 2 });
    await following.reached({ fault: 'http-503' }, { atLeast: 2 });
    expect(await activities(following.handle)).toHaveLength(4);
    following.setFault({ name: 'unauthorized', operation: 'get' });
    await following.progressWhen(({ phase }) => phase === 'unauthorized');
    following.clearFaults();
    const { observed } = await expectAllCounted(following);
    expect(observed).toMatchObject({ 'http 503': 2, failed: 1 });
    expect(observed['http 401']).toBeGreaterThanOrEqual(1);
  });

  it.concurrent('honours a Retry-After', async () => {
    const following = await untilPolled(await follow(ENDLESS, MINUTE), 4);
    following.setFault({ name: 'http-429', operation: 'get', times: 1, parameters: { retryAfter: '5' } });
    const [limited] = await following.reached({ fault: 'http-429' });
    const next = await eventually('the read after it', async () =>
      (await following.reached({ operation: 'get' })).find(({ number }) => number > (limited?.number ?? 0)),
    );
    expect(Date.parse(next.time) - Date.parse(limited?.time ?? '')).toBeGreaterThanOrEqual(5_000);
    await following.handle.terminate();
  });

  it.concurrent('keeps its counts through a read so slow that it heartbeats', async () => {
    const following = await untilPolled(await followWithSlowReads(ENDLESS, MINUTE), 5);
    following.setFault({ name: 'hold', operation: 'get', times: 1 });
    // The read itself gives up after nine seconds: by then it has told twice that it lives.
    await following.reached({ fault: 'hold', ending: 'caller-gone' });
    expect((await expectAllCounted(following)).observed.timeout).toBe(1);
  });

  it.concurrent('returns to the workflow at the end of its patience, and goes on', async () => {
    const following = await followWithLittlePatience(ENDLESS, MINUTE);
    const counted = await following.progressWhen(({ polls }) => polls >= 6);
    expect(counted).toMatchObject({ observed: { active: counted.polls }, lastAnswer: 'active' });
    following.changeJob({ status: 'failed' });
    const { followUp } = await following.result();
    // Nor is one that the end of a patience has cut off.
    expect(followUp.observed).toEqual({ active: followUp.polls - 1, failed: 1 });
    const patient = (await activities(following.handle)).filter((type) => type === 'pollJob');
    expect(patient.length).toBeGreaterThanOrEqual(2);
  });

  const NEAR = { polling: { ...SOON, timerPolls: 1 }, deadline: '15s', confirm: '1s' } as const;

  it.concurrent('ends with the deadline, after one last read, with exact counts', async () => {
    const following = await follow(ENDLESS, NEAR);
    const { type, details } = await following.failure();
    expect(type).toBe('DeadlineExceeded');
    expect(await activities(following.handle)).toContain('pollJob');
    expect((await activities(following.handle)).at(-1)).toBe('getJob');
    // An attempt that the deadline has cut off was not reported, and is not counted.
    expect([1, 2]).toContain(following.gets() - details.followUp.polls);
    expect(details.followUp.observed).toEqual({ active: details.followUp.polls });
  });

  it.concurrent('goes beyond the old deadline when it is extended', async () => {
    const following = await untilPolled(await follow(ENDLESS, NEAR), 4);
    const { deadlineAt } = await following.update('extendDeadline', '60s');
    await following.reached({ operation: 'get' }, { atLeast: 18 });
    expect(Date.now()).toBeLessThan(Date.parse(deadlineAt));
    await expectAllCounted(following);
  });

  const slow = async () => untilPolled(await follow(ENDLESS, { polling: SLOW, deadline: '90s' }), 3);

  it.concurrent('pollNow reads beside it, and leaves it where nothing has changed', async () => {
    const following = await slow();
    const before = following.gets();
    const progress = await following.update('pollNow');
    expect(following.gets()).toBe(before + 1);
    // The one before the patience, and this one: those of the patience are counted at its end.
    expect(progress).toMatchObject({ phase: 'watching', polls: 2 });
    expect(await pendingRead(following)).toBeDefined();
    await following.handle.terminate();
  });

  it.concurrent('pollNow ends it on a change, with every answer counted', async () => {
    const following = await slow();
    following.changeJob({ status: 'completed', prLink: 'https://example.test/pull/2' });
    const progress = await following.update('pollNow');
    expect(progress).toMatchObject({ polls: 3, observed: { active: 2, completed: 1 } });
    const { prLink, followUp } = await following.result();
    expect(prLink).toBe('https://example.test/pull/2');
    expect(followUp.polls).toBe(following.gets() - 1);
  });

  it.concurrent('a cancelled one ends at once, and its receipt counts every answer', async () => {
    const following = await slow();
    await following.handle.cancel();
    expect(await following.receiptOfCancelled()).toMatchObject({ polls: 2, observed: { active: 2 } });
    // Before the next read was due.
    expect(following.gets()).toBe(3);
  });

  it.concurrent(
    'the wait for an operator’s decision is polled the same way, until the decision',
    async () => {
      const asked: Partial<FollowUpRequest> = { onUnknownDelivery: 'ask', polling: SOON, deadline: '60s' };
      const lost = { name: 'reset', operation: 'message', times: 1 } as const;
      const following = await untilPolled(await follow({}, asked, lost), 5);
      expect(await following.handle.query('progress')).toMatchObject({ phase: 'needs-decision' });
      await following.update('resolveDelivery', 'not-delivered');
      const { followUp } = await following.result();
      expect(followUp.delivery).toMatchObject({ verdict: 'accepted', sends: 2 });
      expect(following.processed()).toEqual([false, true]);
    },
  );
});

const { follow } = sharedEnvironment({ inProcessPolls: 1_000, httpTimeoutMs: 20_000 });

it('two polls of one run are counted once each: the first frees its place with its read under way', async () => {
  const polling = { initial: '500ms', growth: 0, maximum: '500ms', jitter: 0, timerPolls: 1 } as const;
  const following = await untilPolled(await follow(ENDLESS, { polling, deadline: '90s' }), 5);
  following.setFault({ name: 'hold', operation: 'get', times: 1 });
  await following.reached({ fault: 'hold' });
  // Beside the read that is held, the job has another status: the first poll is ended, and a second one follows.
  const parameters = { word: 'pondering', 'instead-of': 'active' };
  following.setFault({ name: 'unknown-status', operation: 'get', parameters });
  await following.update('pollNow');
  await following.reached({ operation: 'get' }, { atLeast: following.gets() + 6 });
  await following.handle.cancel();
  const receipt = await following.receiptOfCancelled();
  // The look and the read that was held are no polls; one more may be under way at the end.
  const read = following.gets() - 2;
  expect([read, read - 1]).toContain(receipt.polls);
  const sent = following.gets();
  await sleep(1_500);
  expect(following.gets()).toBe(sent);
  following.release();
});
