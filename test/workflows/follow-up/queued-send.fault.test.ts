import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { FollowUpRequest } from '../../../src/core/request';
import type { NewJob } from '../../../sandbox';
import { Environment } from '../../harness/environment';
import { eventually } from '../../harness/eventually';
import { BY_RESPONSE, ENDLESS, type Following, NOT_SENT } from '../../harness/following';
import { Operator } from '../../harness/operator';
import { pending } from '../../harness/pending-poll';

/** How long a send waits in its queue at least. */
const HELD_MS = 3_000;

/** A follow-up whose send waits in its task queue, behind a limit that lets nothing pass until its release. */
async function heldInItsQueue(
  job: NewJob,
  asked: Partial<FollowUpRequest>,
  test: (following: Following, release: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const environment = await Environment.open();
  try {
    const operator = new Operator(environment.client);
    await operator.limit(environment.taskQueues.send, 0);
    const following = await environment.follow(job, asked);
    await eventually('the send waits in its queue', () => pending(following, 'sendMessage'));
    await sleep(HELD_MS);
    expect(await pending(following, 'sendMessage')).toBeDefined();
    expect(following.gets() + following.posts().length).toBe(0);
    await test(following, () => operator.limit(environment.taskQueues.send, null));
  } finally {
    await environment.close();
  }
}

describe('a send that waits in its queue behind a limit', () => {
  it.concurrent('with reject is not made to a job that has become active meanwhile', () =>
    heldInItsQueue(ENDLESS, { whenActive: 'reject' }, async (following, release) => {
      following.changeJob({ status: 'active' });
      await release();
      const { message, details } = await following.failure();
      expect(message).toContain('The job is active');
      expect(details.followUp.baseline).toMatchObject({ status: 'active' });
      expect(details).not.toHaveProperty('httpStatus');
      const ending = { type: 'FollowUpRejected', delivery: NOT_SENT, posts: [] };
      expect(await following.ending()).toMatchObject(ending);
    }),
  );

  it.concurrent('with reject is made to a job that was active and has come to rest meanwhile', () =>
    heldInItsQueue({ ...ENDLESS, status: 'active' }, { whenActive: 'reject' }, async (following, release) => {
      following.changeJob({ status: 'completed' });
      await release();
      await following.reached({ operation: 'message', processed: true });
      expect(following.posts()).toHaveLength(1);
    }),
  );

  it.concurrent('with wait is not made to a job that has become active meanwhile, until it rests', () =>
    heldInItsQueue(ENDLESS, { whenActive: 'wait' }, async (following, release) => {
      following.changeJob({ status: 'active' });
      await release();
      await following.progressWhen(({ phase }) => phase === 'waiting');
      expect(following.posts()).toEqual([]);
      following.changeJob({ status: 'failed' });
      await following.reached({ operation: 'message', processed: true });
      following.changeJob({ status: 'completed' });
      const { followUp } = await following.result();
      expect(followUp).toMatchObject({ baseline: { status: 'failed' }, delivery: BY_RESPONSE });
    }),
  );

  it.concurrent('has the age of its turn, and sentAt, count from the POST', () => {
    // Counted from the POST the first interval is a second or so; counted from the start it would be at least ten times as
    // long as the send was held, and no second read would be seen.
    const polling = { initial: '300ms', growth: 10, maximum: '1m', jitter: 0 } as const;
    return heldInItsQueue(ENDLESS, { polling }, async (following, release) => {
      const releasedAt = Date.now();
      await release();
      // The look before the POST is the first.
      const [, poll] = await following.reached({ operation: 'get' }, { atLeast: 2 });
      following.changeJob({ status: 'completed' });
      const { followUp } = await following.result();
      const sentAt = Date.parse(followUp.sentAt ?? '');
      expect(sentAt).toBeGreaterThanOrEqual(releasedAt);
      expect(sentAt).toBeLessThanOrEqual(Date.parse(poll?.time ?? ''));
    });
  });
});

describe('a turn of somebody else that began and ended while a send waited in its queue', () => {
  const turnOfOthers = async (following: Following) => {
    following.changeJob({ status: 'active' });
    await sleep(500);
    following.changeJob({ status: 'failed', prLink: 'https://code.test/pull/1' });
  };

  it.concurrent('is part of the baseline, and proves no delivery', () =>
    heldInItsQueue(ENDLESS, { onUnknownDelivery: 'fail' }, async (following, release) => {
      following.setFault({ name: 'close-after-read', operation: 'message', times: 1 });
      await turnOfOthers(following);
      await release();
      const { type, details } = await following.failure();
      expect(type).toBe('DeliveryUnknown');
      const baseline = { status: 'failed', prLink: 'https://code.test/pull/1', archivedAt: null };
      expect(details.followUp.baseline).toEqual(baseline);
      expect(following.processed()).toEqual([false]);
    }),
  );

  it.concurrent('is part of the baseline, and proves no end', () =>
    heldInItsQueue({ turn: { durationMs: 0, outcome: 'failed' } }, {}, async (following, release) => {
      await turnOfOthers(following);
      await release();
      const { status, followUp } = await following.result();
      expect(status).toBe('failed');
      expect(followUp).toMatchObject({ evidence: 'confirmed', baseline: { status: 'failed' } });
      expect(following.processed()).toEqual([true]);
    }),
  );
});
