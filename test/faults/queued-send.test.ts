import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { FollowUpRequest } from '../../src/core/request';
import type { NewJob } from '../../sandbox';
import { eventually } from '../harness/eventually';
import type { Following } from '../harness/following';
import { Environment } from '../harness/environment';
import { Operator } from '../harness/operator';

/** How long a send waits in its queue at least. */
const HELD_MS = 3_000;

interface Held {
  readonly environment: Environment;
  readonly following: Following;
  /** Removes the limit. */
  readonly release: () => Promise<void>;
}

/** A follow-up whose send waits in its task queue, behind a limit that lets nothing pass. */
async function heldInItsQueue(
  job: NewJob,
  asked: Partial<FollowUpRequest>,
  test: (held: Held) => Promise<void>,
): Promise<void> {
  const environment = await Environment.open();
  try {
    const operator = new Operator(environment.client);
    await operator.limit(environment.taskQueues.send, 0);
    const following = await environment.follow(job, asked);
    await eventually('the send waits in its queue', () => isPending(following));
    await sleep(HELD_MS);
    expect(await isPending(following)).toBe(true);
    expect(following.gets() + following.posts().length).toBe(0);
    await test({ environment, following, release: () => operator.limit(environment.taskQueues.send, null) });
  } finally {
    await environment.close();
  }
}

async function isPending({ handle }: Following): Promise<boolean> {
  const { raw } = await handle.describe();
  return raw.pendingActivities?.some(({ activityType }) => activityType?.name === 'sendMessage') === true;
}

const ENDLESS = { turn: { durationMs: null } } as const;

describe('a send that waits in its queue behind a limit', () => {
  it.concurrent('with reject is not made to a job that has become active meanwhile', () =>
    heldInItsQueue(ENDLESS, { whenActive: 'reject' }, async ({ environment, following, release }) => {
      environment.sandbox.changeJob(following.key, { status: 'active' });
      await release();
      const { type, details } = await following.failure();
      expect(type).toBe('FollowUpRejected');
      expect(details.followUp.delivery).toEqual({ verdict: 'not-sent', confirmedBy: null, sends: 0 });
      expect(following.posts()).toEqual([]);
    }),
  );

  it.concurrent('with reject is made to a job that was active and has come to rest meanwhile', () => {
    const job = { ...ENDLESS, status: 'active' } as const;
    return heldInItsQueue(job, { whenActive: 'reject' }, async ({ environment, following, release }) => {
      environment.sandbox.changeJob(following.key, { status: 'completed' });
      await release();
      await eventually('the message is processed', () => following.processed() === 1);
      expect(following.posts()).toHaveLength(1);
    });
  });

  it.concurrent('with wait is not made to a job that has become active meanwhile, until it rests', () =>
    heldInItsQueue(ENDLESS, { whenActive: 'wait' }, async ({ environment, following, release }) => {
      environment.sandbox.changeJob(following.key, { status: 'active' });
      await release();
      await following.progressWhen(({ phase }) => phase === 'waiting');
      expect(following.posts()).toEqual([]);
      environment.sandbox.changeJob(following.key, { status: 'failed' });
      await eventually('the message is processed', () => following.processed() === 1);
      environment.sandbox.changeJob(following.key, { status: 'completed' });
      const { followUp } = await following.result();
      expect(followUp.baseline?.status).toBe('failed');
      expect(followUp.delivery).toEqual({ verdict: 'accepted', confirmedBy: 'response', sends: 1 });
    }),
  );

  it.concurrent('has the age of its turn, and sentAt, count from the POST', () => {
    // The first interval after a POST is 300 ms; it would be as long as the send was held if the turn's age counted from there.
    const polling = { initial: '300ms', growth: 1, maximum: '1m', jitter: 0 } as const;
    return heldInItsQueue(ENDLESS, { polling }, async ({ environment, following, release }) => {
      await release();
      const [post] = await environment.sandbox.journal.waitFor({ ...following.key, operation: 'message' });
      const postedAt = Date.parse(post?.time ?? '');
      const reads = { ...following.key, operation: 'get' } as const;
      // The look before the POST is the first.
      const [, poll] = await environment.sandbox.journal.waitFor(reads, { atLeast: 2 });
      expect(Date.parse(poll?.time ?? '') - postedAt).toBeLessThan(HELD_MS);
      environment.sandbox.changeJob(following.key, { status: 'completed' });
      const { followUp } = await following.result();
      expect(Math.abs(Date.parse(followUp.sentAt ?? '') - postedAt)).toBeLessThan(1_000);
    });
  });
});

describe('a turn of somebody else that began and ended while a send waited in its queue', () => {
  const turnOfOthers = async ({ environment, following }: Held) => {
    environment.sandbox.changeJob(following.key, { status: 'active' });
    await sleep(500);
    environment.sandbox.changeJob(following.key, { status: 'failed', prLink: 'https://code.test/pull/1' });
  };

  it.concurrent('is part of the baseline, and proves no delivery', () =>
    heldInItsQueue(ENDLESS, { onUnknownDelivery: 'fail' }, async (held) => {
      const { environment, following, release } = held;
      const fault = { name: 'close-after-read', operation: 'message', times: 1 } as const;
      environment.sandbox.setFault({ ...following.key, ...fault });
      await turnOfOthers(held);
      await release();
      const { type, details } = await following.failure();
      expect(type).toBe('DeliveryUnknown');
      expect(details.followUp.baseline).toEqual({
        ...{ status: 'failed', prLink: 'https://code.test/pull/1', archivedAt: null },
      });
      expect(following.processed()).toBe(0);
    }),
  );

  it.concurrent('is part of the baseline, and proves no end', () => {
    const job = { turn: { durationMs: 0, outcome: 'failed' } } as const;
    return heldInItsQueue(job, {}, async (held) => {
      const { following, release } = held;
      await turnOfOthers(held);
      await release();
      const { status, followUp } = await following.result();
      expect(status).toBe('failed');
      expect(followUp.evidence).toBe('confirmed');
      expect(followUp.baseline?.status).toBe('failed');
      expect(following.processed()).toBe(1);
    });
  });
});
