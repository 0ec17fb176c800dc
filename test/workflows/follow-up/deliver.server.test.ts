import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { BY_READ, BY_RESPONSE, ENDLESS, type JobFault, UNKNOWN } from '../../harness/following';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open, follow } = sharedEnvironment();

/** Faults that leave it open whether the message arrived. */
const ARRIVED = ['close', 'reset', '500', '503', 'timeout'].map((how) => `processed-then-${how}`);
const NOT_ARRIVED = ['close-after-read', 'reset', 'hang', 'html', 'redirect'];

/** A turn that outlasts the time-out of the POST and `confirm` after it: only a fresh answer proves a delivery. */
const LASTING = { turn: { durationMs: 6_000 } };

/** The message does not arrive, which nobody knows. */
const LOST: JobFault = { name: 'reset', operation: 'message' };
const LOST_ONCE = { ...LOST, times: 1 };

describe('a message of which nobody knows', () => {
  it.concurrent.each(ARRIVED)('after %s is found by reading the job, and is not sent twice', async (name) => {
    const following = await follow(LASTING, { reconcile: '10s' }, { name, operation: 'message' });
    expect(await following.ending()).toMatchObject({ status: 'completed', delivery: BY_READ });
    expect(following.posts()).toHaveLength(1);
  });

  it.concurrent.each(NOT_ARRIVED)(
    'after %s, that did not arrive, ends as DeliveryUnknown and is not sent twice',
    async (name) => {
      const following = await follow({}, {}, { name, operation: 'message' });
      const { type, message, details } = await following.failure();
      expect(type).toBe('DeliveryUnknown');
      expect(message).toMatch(
        /reading the job for 2s showed no change.*Nobody can tell whether the message arrived/s,
      );
      expect(details.followUp.delivery).toEqual(UNKNOWN);
      expect(details.followUp.polls).toBeGreaterThan(0);
      expect(following.posts()).toHaveLength(1);
    },
  );

  it.concurrent('to a job that was active before ends at once, as reading can tell nothing', async () => {
    // The message interrupts the turn.
    const following = await follow({ status: 'active', ...ENDLESS }, {}, { name: 'processed-then-close' });
    const { type, message, details } = await following.failure();
    expect(type).toBe('DeliveryUnknown');
    expect(message).toContain('the job was active before');
    expect(details.followUp.polls).toBe(0);
  });

  it.concurrent('is taken as delivered with assume-delivered, and the receipt says so', async () => {
    const job = { status: 'active', turns: [{ durationMs: null }, {}] } as const;
    const asked = { onUnknownDelivery: 'assume-delivered' } as const;
    const { followUp } = await (await follow(job, asked, { name: 'processed-then-close' })).result();
    expect(followUp.delivery).toEqual({ verdict: 'accepted', confirmedBy: 'assumed', sends: 1 });
  });

  it.concurrent('is sent once more with resend, and the receipt counts both', async () => {
    const following = await follow({}, { onUnknownDelivery: 'resend' }, LOST_ONCE);
    const { followUp } = await following.result();
    expect(followUp.delivery).toEqual({ ...BY_RESPONSE, sends: 2 });
    expect(following.processed()).toEqual([false, true]);
  });

  it.concurrent('is not sent a third time with resend', async () => {
    const following = await follow({}, { onUnknownDelivery: 'resend', reconcile: '500ms' }, LOST);
    const { type, delivery, posts } = { type: '', ...(await following.ending()) };
    expect(type).toBe('DeliveryUnknown');
    expect(delivery.sends).toBe(2);
    expect(posts).toHaveLength(2);
  });
});

describe('a message of which nobody knows, with ask', () => {
  async function asking(deadline: `${number}s` = '20s') {
    const asked = { onUnknownDelivery: 'ask', reconcile: '300ms', confirm: '500ms', deadline } as const;
    const following = await follow({}, asked, LOST_ONCE);
    const { doubt } = await following.progressWhen(({ phase }) => phase === 'needs-decision');
    expect(doubt).toMatch(/\. Then reading the job for 300ms showed no change caused by the message\.$/);
    return following;
  }

  it.concurrent('is watched after an operator has said that it arrived', async () => {
    const following = await asking();
    const delivery = { verdict: 'accepted', confirmedBy: 'operator' };
    expect(await following.update('resolveDelivery', 'delivered')).toMatchObject({ delivery });
    expect(await following.ending()).toMatchObject({ evidence: 'confirmed', posts: [false] });
  });

  it.concurrent('is sent again after an operator has said that it did not arrive', async () => {
    const following = await asking();
    await following.update('resolveDelivery', 'not-delivered');
    const delivery = { ...BY_RESPONSE, sends: 2 };
    expect(await following.ending()).toMatchObject({ delivery, posts: [false, true] });
  });

  it.concurrent('asks again when the further POST is unknown too, and takes no other word', async () => {
    const following = await asking();
    await expect(following.update('resolveDelivery', 'perhaps')).rejects.toThrow();
    following.setFault(LOST_ONCE);
    await following.update('resolveDelivery', 'not-delivered');
    await following.reached({ operation: 'message' }, { atLeast: 2 });
    await following.progressWhen(({ phase }) => phase === 'needs-decision');
    await following.update('resolveDelivery', 'delivered');
    expect((await following.ending()).delivery).toMatchObject({ confirmedBy: 'operator', sends: 2 });
  });

  it.concurrent('goes on by itself when the job moves meanwhile', async () => {
    const following = await asking();
    following.changeJob({ status: 'failed' });
    expect(await following.ending()).toMatchObject({ status: 'failed', delivery: { confirmedBy: 'read' } });
  });

  it.concurrent('ends by the deadline', async () => {
    const following = await asking('6s');
    const delivery = { verdict: 'unknown' };
    expect(await following.ending()).toMatchObject({ type: 'DeadlineExceeded', delivery });
  });
});

describe('a message that was certainly not processed', () => {
  it.concurrent('is sent again after a 429, by its Retry-After', async () => {
    const limited = { name: 'http-429', operation: 'message', parameters: { retryAfter: 2 } } as const;
    const following = await follow({}, {}, { ...limited, times: 2 });
    const { followUp } = await following.result();
    expect(followUp.delivery).toEqual({ ...BY_RESPONSE, sends: 3 });
    const [first = 0, second = 0, third = 0] = following.posts().map(({ time }) => Date.parse(time));
    expect(Math.min(second - first, third - second)).toBeGreaterThanOrEqual(2_000);
  });

  it.concurrent('is not sent after the deadline', async () => {
    const fault = {
      name: 'http-429',
      operation: 'message',
      parameters: { retryAfter: 999_999_999 },
    } as const;
    const following = await follow({}, { deadline: '6s' }, fault);
    const { type, message, details } = await following.failure();
    expect(type).toBe('DeadlineExceeded');
    expect(message).toContain('The service has processed nothing.');
    expect(details.followUp.delivery).toMatchObject({ verdict: 'not-sent', sends: 1 });
    expect(following.processed()).toEqual([false]);
  });
});

describe('a message for a job that the service calls busy', () => {
  const busy = (code: number) => {
    const parameters = { code, words: 'a turn is in progress' };
    return { name: 'status', operation: 'message', parameters, times: 1 } as const;
  };

  it.concurrent.each([409, 423])('waits after a %d, where active jobs are waited for', async (code) => {
    const following = await follow({}, { whenActive: 'wait' }, busy(code));
    expect(await following.ending()).toMatchObject({ status: 'completed', delivery: { sends: 2 } });
    expect(following.processed()).toEqual([false, true]);
  });

  it.concurrent.each(['send', 'reject'] as const)('is refused where they are not: %s', async (whenActive) => {
    const following = await follow({}, { whenActive }, busy(423));
    const { type, message } = await following.failure();
    expect([type, message]).toEqual(['FollowUpRejected', expect.stringContaining('in progress')]);
    const delivery = { verdict: 'not-sent', confirmedBy: null, sends: 1 };
    expect(await following.ending()).toMatchObject({ delivery, posts: [false] });
  });
});

it.concurrent('a project that the service wants quiet is left alone by every follow-up', async () => {
  const environment = await open();
  const parameters = { retryAfter: 4 };
  const first = await follow({}, {}, { name: 'http-429', operation: 'message', parameters, times: 1 });
  await first.reached({ operation: 'message' });
  const second = await environment.follow({ projectId: first.request.projectId });
  const { lastAnswer } = await second.progressWhen((progress) => progress.lastAnswer !== null);
  expect(lastAnswer).toMatch(/^project cooling down until \d{4}-.*Z, as the service asked$/);
  await Promise.all([first.result(), second.result()]);
  const refusedAt = Date.parse(first.posts()[0]?.time ?? '');
  const later = environment.sandbox.journal
    .entries(second.key)
    .map(({ time }) => Date.parse(time) - refusedAt);
  expect(Math.min(...later)).toBeGreaterThanOrEqual(4_000);
});

describe('a message that is rejected', () => {
  it.concurrent.each([400, 403, 404, 409, 422])(
    'with %d ends at once, with the service’s own words',
    async (code) => {
      const fault = { name: 'status', operation: 'message', parameters: { code } } as const;
      const following = await follow({}, {}, fault);
      const { type, details } = await following.failure();
      expect(type).toBe('FollowUpRejected');
      expect(details).toMatchObject({ httpStatus: code, serviceMessage: expect.any(String) });
      expect(details.followUp.delivery).toEqual({ verdict: 'rejected', confirmedBy: null, sends: 1 });
      expect(following.posts()).toHaveLength(1);
    },
  );
});

it.concurrent('a message is sent once, and the final job comes back with its pull request', async () => {
  const following = await follow({ turn: { reads: 2 } });
  expect(await following.result()).toEqual({
    ...following.report().job,
    status: 'completed',
    prLink: expect.stringContaining('/pull/'),
    followUp: {
      requestId: following.request.requestId,
      delivery: BY_RESPONSE,
      evidence: 'seen-active',
      baseline: { status: 'completed', prLink: null, archivedAt: null },
      promptDigest: createHash('sha256').update(following.request.prompt).digest('hex'),
      polls: expect.any(Number),
      sentAt: expect.stringMatching(/Z$/),
      settledAt: expect.stringMatching(/Z$/),
      observed: expect.objectContaining({ completed: 1 }),
    },
  });
  const prompt = expect.objectContaining({ text: 'Fix the broken links.' });
  expect(following.posts()).toMatchObject([{ processed: true, prompt }]);
});
