import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { WorkflowFailedError } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import type { FollowUpProgress, Receipt } from '../../src/core/result';
import type { FollowUpRequest } from '../../src/core/request';
import { payloadText } from '../harness/encryption';
import { eventually } from '../harness/eventually';
import { type Following, type Environment } from '../harness/environment';
import { sharedEnvironment } from '../harness/shared-environment';
import { pendingRead } from '../harness/pending-poll';

/** Both ways in which one activity polls on; whatever is counted must be the same. */
const GEARS = [
  { gear: 'in the process of its worker', inProcessPolls: 1_000 },
  { gear: 'by its own retries', inProcessPolls: 0 },
];

/** A turn that ends only when the test says so. */
const endless = { turn: { durationMs: null } };

/** Two reads by timers, and then an interval that the server keeps (shorter ones come as about a second). */
const SOON = { initial: '1s', growth: 0, maximum: '1s', jitter: 0, timerPolls: 2 } as const;

/** One read by a timer, one by the activity two seconds later, and then intervals of six seconds and more. */
const SLOW = { initial: '500ms', growth: 3, maximum: '10m', jitter: 0, timerPolls: 1 } as const;

/** The types of the activities of the last run, in the order in which they were scheduled. */
async function activities(following: Following): Promise<string[]> {
  const { events } = await following.handle.fetchHistory();
  return (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: scheduled }) =>
    scheduled?.activityType?.name ? [scheduled.activityType.name] : [],
  );
}

/** Waits until the activity that polls is pending, and so many reads in all (the look before the send too) were answered. */
async function untilPolled(environment: Environment, following: Following, gets: number): Promise<void> {
  await eventually(`${gets} reads, and a pending poll`, async () => {
    const answered = environment.sandbox.journal.entries({
      ...following.key,
      operation: 'get',
      ending: 'answered',
    });
    return answered.length >= gets && (await pendingRead(following)) !== undefined;
  });
}

async function receiptOfCancelled(following: Following): Promise<Receipt> {
  const error: unknown = await following.handle.result().catch((reason: unknown) => reason);
  expect((error as WorkflowFailedError).cause).toBeInstanceOf(CancelledFailure);
  return (await following.handle.describe()).memo?.followUp as Receipt;
}

describe.each(GEARS)('the long tail of a watch, $gear', ({ inProcessPolls }) => {
  const open = sharedEnvironment({ inProcessPolls });
  const openWithLittlePatience = sharedEnvironment({ inProcessPolls, pollLimitMs: 4_000 });
  const openWithSlowReads = sharedEnvironment({ inProcessPolls, httpTimeoutMs: 9_000 });

  it.concurrent('is polled by one activity, and every answer is counted', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: SOON });
    await untilPolled(environment, following, 6);
    environment.sandbox.changeJob(following.key, {
      status: 'completed',
      prLink: 'https://example.test/pull/1',
    });
    const { prLink, followUp } = await following.result();
    expect(prLink).toBe('https://example.test/pull/1');
    expect(followUp.evidence).toBe('seen-active');
    expect(followUp.polls).toBeGreaterThanOrEqual(6);
    expect(followUp.observed).toEqual({ active: followUp.polls - 1, completed: 1 });
    expect(followUp.polls).toBe(following.gets() - 1);
    // The send with its look, two single reads.
    expect(await activities(following)).toEqual(['sendMessage', 'getJob', 'getJob', 'pollJob']);
  });

  it.concurrent('is polled by timers where timerPolls is all', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: { ...SOON, timerPolls: 'all' } });
    await following.progressWhen(({ polls }) => polls >= 4);
    expect(await activities(following)).not.toContain('pollJob');
    await following.handle.terminate();
  });

  it.concurrent('keeps the cadence of the turn’s age', async () => {
    const environment = await open();
    const polling = { initial: '1s', growth: 0.5, maximum: '1m', jitter: 0, timerPolls: 1 } as const;
    const following = await environment.follow(endless, { polling, deadline: '60s' });
    await untilPolled(environment, following, 5);
    const times = environment.sandbox.journal
      .entries({ ...following.key, operation: 'get' })
      .map(({ time }) => Date.parse(time));
    // At an age of a the next read is due at 1.5 a; no read is early. The look before the send is before the turn's birth.
    const sentAt = Date.parse(following.posts()[0]?.time ?? '');
    const ages = times.slice(1).map((time) => time - sentAt);
    const early = ages.slice(1).filter((age, index) => age < 1.45 * (ages[index] ?? 0));
    expect(ages.length).toBeGreaterThanOrEqual(4);
    expect(early).toEqual([]);
    await following.handle.terminate();
  });

  it.concurrent('absorbs and counts trouble, and comes back for what needs a decision', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: SOON, deadline: '60s' });
    await untilPolled(environment, following, 4);
    environment.sandbox.setFault({ name: 'http-503', ...following.key, operation: 'get', times: 2 });
    await environment.sandbox.journal.waitFor({ ...following.key, fault: 'http-503' }, { atLeast: 2 });
    expect(await activities(following)).toHaveLength(4);
    environment.sandbox.setFault({ name: 'unauthorized', ...following.key, operation: 'get' });
    await following.progressWhen(({ phase }) => phase === 'unauthorized');
    environment.sandbox.clearFaults(following.key);
    environment.sandbox.changeJob(following.key, { status: 'failed' });
    const { followUp } = await following.result();
    expect(followUp.observed).toMatchObject({ 'http 503': 2, failed: 1 });
    expect(followUp.observed['http 401']).toBeGreaterThanOrEqual(1);
    expect(followUp.polls).toBe(following.gets() - 1);
  });

  it.concurrent('honours a Retry-After', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: SOON, deadline: '60s' });
    await untilPolled(environment, following, 4);
    const parameters = { retryAfter: '5' };
    environment.sandbox.setFault({
      name: 'http-429',
      ...following.key,
      operation: 'get',
      times: 1,
      parameters,
    });
    const [limited] = await environment.sandbox.journal.waitFor({ ...following.key, fault: 'http-429' });
    const after = () =>
      environment.sandbox.journal
        .entries({ ...following.key, operation: 'get' })
        .find(({ number }) => number > (limited?.number ?? 0));
    await eventually('the read after it', () => after() !== undefined);
    expect(Date.parse(after()?.time ?? '') - Date.parse(limited?.time ?? '')).toBeGreaterThanOrEqual(5_000);
    await following.handle.terminate();
  });

  it.concurrent('keeps its counts through a read so slow that it heartbeats', async () => {
    const environment = await openWithSlowReads();
    const following = await environment.follow(endless, { polling: SOON, deadline: '60s' });
    await untilPolled(environment, following, 5);
    environment.sandbox.setFault({ name: 'hold', ...following.key, operation: 'get', times: 1 });
    await environment.sandbox.journal.waitFor({ ...following.key, fault: 'hold' });
    // The read itself gives up after nine seconds: by then it has told twice that it lives.
    await environment.sandbox.journal.waitFor(
      { ...following.key, fault: 'hold', ending: 'caller-gone' },
      { timeoutMs: 15_000 },
    );
    environment.sandbox.changeJob(following.key, { status: 'failed' });
    const { followUp } = await following.result();
    expect(followUp.observed.timeout).toBe(1);
    expect(followUp.polls).toBe(following.gets() - 1);
  });

  it.concurrent('returns to the workflow at the end of its patience, and goes on', async () => {
    const environment = await openWithLittlePatience();
    const following = await environment.follow(endless, { polling: SOON, deadline: '60s' });
    const counted = await following.progressWhen(({ polls }) => polls >= 6);
    expect(counted).toMatchObject({ observed: { active: counted.polls }, lastAnswer: 'active' });
    environment.sandbox.changeJob(following.key, { status: 'failed' });
    const { followUp } = await following.result();
    // Nor is one that the end of a patience has cut off.
    expect(followUp.observed).toEqual({ active: followUp.polls - 1, failed: 1 });
    const patient = (await activities(following)).filter((type) => type === 'pollJob');
    expect(patient.length).toBeGreaterThanOrEqual(2);
  });

  it.concurrent('ends with the deadline, after one last read, with exact counts', async () => {
    const environment = await open();
    const asked = { polling: { ...SOON, timerPolls: 1 }, deadline: '15s', confirm: '1s' } as const;
    const following = await environment.follow(endless, asked);
    const { type, details } = await following.failure();
    expect(type).toBe('DeadlineExceeded');
    expect(await activities(following)).toContain('pollJob');
    expect((await activities(following)).at(-1)).toBe('getJob');
    // An attempt that the deadline has cut off was not reported, and is not counted.
    expect([1, 2]).toContain(following.gets() - details.followUp.polls);
    expect(details.followUp.observed).toEqual({ active: details.followUp.polls });
  });

  it.concurrent('goes beyond the old deadline when it is extended', async () => {
    const environment = await open();
    const asked = { polling: { ...SOON, timerPolls: 1 }, deadline: '15s', confirm: '1s' } as const;
    const following = await environment.follow(endless, asked);
    await untilPolled(environment, following, 4);
    const { deadlineAt } = await following.handle.executeUpdate<FollowUpProgress, [string]>(
      'extendDeadline',
      {
        args: ['60s'],
      },
    );
    await environment.sandbox.journal.waitFor(
      { ...following.key, operation: 'get' },
      { atLeast: 18, timeoutMs: 50_000 },
    );
    expect(Date.now()).toBeLessThan(Date.parse(deadlineAt));
    environment.sandbox.changeJob(following.key, { status: 'failed' });
    const { followUp } = await following.result();
    expect(followUp.polls).toBe(following.gets() - 1);
  });

  it.concurrent('shows what the workflow can’t know: by which activity the job is read', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: SOON });
    await untilPolled(environment, following, 5);
    const { lastFailure } = (await pendingRead(following)) ?? {};
    const told = inProcessPolls === 0 ? /^poll \d+ of this activity: active, next in 1s$/ : /^$/;
    expect(lastFailure?.message ?? '').toMatch(told);
    const { events } = await following.handle.fetchHistory();
    const summaries = (events ?? []).map(({ userMetadata }) => payloadText(userMetadata?.summary));
    expect(summaries).toContain('"poll 3 and on, until active changes"');
    await following.handle.terminate();
  });
});

describe.each(GEARS)('pollNow during a poll, $gear', ({ inProcessPolls }) => {
  const open = sharedEnvironment({ inProcessPolls });

  it.concurrent('reads beside it, and leaves it where nothing has changed', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: SLOW, deadline: '90s' });
    await untilPolled(environment, following, 3);
    const before = following.gets();
    const progress = await following.handle.executeUpdate<FollowUpProgress, []>('pollNow');
    expect(following.gets()).toBe(before + 1);
    // The one before the patience, and this one: those of the patience are counted at its end.
    expect(progress).toMatchObject({ phase: 'watching', polls: 2 });
    expect(await pendingRead(following)).toBeDefined();
    await following.handle.terminate();
  });

  it.concurrent('ends it on a change, with every answer counted', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: SLOW, deadline: '90s' });
    await untilPolled(environment, following, 3);
    environment.sandbox.changeJob(following.key, {
      status: 'completed',
      prLink: 'https://example.test/pull/2',
    });
    const progress = await following.handle.executeUpdate<FollowUpProgress, []>('pollNow');
    expect(progress).toMatchObject({ polls: 3, observed: { active: 2, completed: 1 } });
    const { prLink, followUp } = await following.result();
    expect(prLink).toBe('https://example.test/pull/2');
    expect(followUp.polls).toBe(following.gets() - 1);
  });
});

describe.each(GEARS)('a follow-up that is cancelled during a poll, $gear', ({ inProcessPolls }) => {
  const open = sharedEnvironment({ inProcessPolls });

  it.concurrent('ends at once, and its receipt counts every answer', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: SLOW, deadline: '90s' });
    await untilPolled(environment, following, 3);
    const cancelledAt = Date.now();
    await following.handle.cancel();
    const receipt = await receiptOfCancelled(following);
    expect(Date.now() - cancelledAt).toBeLessThan(10_000);
    expect(receipt).toMatchObject({ polls: 2, observed: { active: 2 } });
    expect(following.gets()).toBe(3);
  });
});

describe('two polls of one run in one process', () => {
  const open = sharedEnvironment({ inProcessPolls: 1_000, httpTimeoutMs: 20_000 });

  it('are counted once each: the first frees its place, though its read is still under way', async () => {
    const environment = await open();
    const polling = { initial: '500ms', growth: 0, maximum: '500ms', jitter: 0, timerPolls: 1 } as const;
    const following = await environment.follow(endless, { polling, deadline: '90s' });
    const { key } = following;
    await untilPolled(environment, following, 5);
    environment.sandbox.setFault({ ...key, name: 'hold', operation: 'get', times: 1 });
    const { journal } = environment.sandbox;
    await journal.waitFor({ ...key, fault: 'hold' });
    // Beside the read that is held, the job has another status: the first poll is ended, and a second one follows.
    const parameters = { word: 'pondering', 'instead-of': 'active' } as const;
    environment.sandbox.setFault({ ...key, name: 'unknown-status', operation: 'get', parameters });
    await following.handle.executeUpdate('pollNow');
    await journal.waitFor({ ...key, operation: 'get' }, { atLeast: following.gets() + 6 });
    await following.handle.cancel();
    const receipt = await receiptOfCancelled(following);
    // The look and the read that was held are no polls; one more may be under way at the end.
    const read = following.gets() - 2;
    expect([read, read - 1]).toContain(receipt.polls);
    const sent = following.gets();
    await sleep(1_500);
    expect(following.gets()).toBe(sent);
    environment.sandbox.release(key);
  });
});

describe.each(GEARS)('other waits, $gear', ({ inProcessPolls }) => {
  const open = sharedEnvironment({ inProcessPolls });

  it.concurrent('for a job that is not at rest are polled the same way', async () => {
    const environment = await open();
    const asked: Partial<FollowUpRequest> = { whenActive: 'wait', polling: SOON, deadline: '60s' };
    const following = await environment.follow({ status: 'active', ...endless }, asked);
    await untilPolled(environment, following, 5);
    expect(following.posts()).toEqual([]);
    environment.sandbox.changeJob(following.key, { status: 'completed' });
    await environment.sandbox.journal.waitFor({ ...following.key, operation: 'message' });
    expect((await activities(following)).filter((type) => type === 'pollJob')).toHaveLength(1);
    await following.handle.terminate();
  });

  it.concurrent(
    'for an operator’s decision are polled the same way, and the decision ends them',
    async () => {
      const environment = await open();
      const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'patient-ask' });
      environment.sandbox.setFault({ name: 'reset', projectId, jobId, operation: 'message', times: 1 });
      const asked: Partial<FollowUpRequest> = { onUnknownDelivery: 'ask', polling: SOON, deadline: '60s' };
      const following = await environment.send({ projectId, jobId, ...asked });
      await untilPolled(environment, following, 5);
      const { phase } = await following.handle.query<FollowUpProgress>('progress');
      expect(phase).toBe('needs-decision');
      await following.handle.executeUpdate('resolveDelivery', { args: ['not-delivered'] });
      const { followUp } = await following.result();
      expect(followUp.delivery).toMatchObject({ verdict: 'accepted', sends: 2 });
      expect(following.processed()).toBe(1);
    },
  );

  it.concurrent('for a status that nobody knows are polled the same way', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: SOON, deadline: '60s' });
    environment.sandbox.setFault({
      name: 'unknown-status',
      ...following.key,
      operation: 'get',
      parameters: { word: 'pondering', 'instead-of': 'active' },
    });
    await untilPolled(environment, following, 5);
    environment.sandbox.clearFaults(following.key);
    environment.sandbox.changeJob(following.key, { status: 'failed' });
    const { followUp } = await following.result();
    expect(followUp.observed.pondering).toBeGreaterThanOrEqual(3);
    expect(followUp.polls).toBe(following.gets() - 1);
  });
});
