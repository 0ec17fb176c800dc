import { describe, expect, it } from '@jest/globals';
import { NOT_SENT_DELIVERY } from '../../harness/follow-up-under-test';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open, follow } = sharedEnvironment();
const { follow: followWithSkippedTime } = sharedEnvironment({ skipsTime: true });

const READ = { operation: 'get' } as const;

describe('before the message is sent', () => {
  // Proves K1.
  it.concurrent.each([
    ['401', { name: 'unauthorized' }, 'unauthorized', /^http 401: the key is expired or wrong/],
    [
      'an HTML page with 404',
      { name: 'html', parameters: { code: 404 } },
      'starting',
      /^http 404, probably from a gateway/,
    ],
  ] as const)(
    'after a read that receives %s, the worker reads again, and sends only after a successful read',
    async (_, fault, phase, pattern) => {
      const following = await follow({}, {}, { ...READ, ...fault });
      await following.waitForRequest({ operation: 'get' }, { atLeast: 3 });
      // The test checks the progress between two reads, because the workflow reports `unknown` while a send is in progress.
      const progress = await following.waitForProgress(({ nextPollAt }) => nextPollAt !== null);
      expect(progress).toMatchObject({ phase, delivery: NOT_SENT_DELIVERY, job: null });
      expect(progress.lastResponse).toMatch(pattern);
      expect(following.posts()).toEqual([]);
      // The key is rotated, or the gateway is repaired.
      (await open()).sandbox.clearFaults(following.key);
      const delivery = { verdict: 'accepted', confirmedBy: 'response', sends: 1 };
      expect(await following.outcomeSummary()).toMatchObject({
        status: 'completed',
        delivery,
        posts: [true],
      });
    },
  );

  // Proves K1.
  it.concurrent('a POST that receives 401 was not processed, so the worker makes another POST', async () => {
    const fault = { name: 'unauthorized', operation: 'message' } as const;
    const following = await follow({}, {}, fault);
    const progress = await following.waitForProgress(
      ({ phase, nextPollAt }) => phase === 'unauthorized' && nextPollAt !== null,
    );
    expect(progress.delivery.verdict).toBe('not-sent');
    expect(progress.delivery.sends).toBeGreaterThan(0);
    (await open()).sandbox.clearFaults(following.key);
    const { posts, ...outcome } = await following.outcomeSummary();
    expect(outcome).toMatchObject({
      status: 'completed',
      delivery: { verdict: 'accepted', sends: posts.length },
    });
    expect(posts.filter(Boolean)).toEqual([true]);
    expect(posts.at(-1)).toBe(true);
  });

  // Proves K1.
  it.concurrent(
    'if the API key is rejected until the deadline, the follow-up fails as DeadlineExceeded with the verdict not-sent',
    async () => {
      const following = await followWithSkippedTime(
        {},
        { deadline: '1h' },
        { name: 'unauthorized', ...READ },
      );
      const { type, message } = await following.failure();
      expect(type).toBe('DeadlineExceeded');
      expect(message).toMatch(/http 401: the key is expired or wrong.* Nothing was sent\.$/);
      expect(await following.outcomeSummary()).toMatchObject({ delivery: NOT_SENT_DELIVERY, posts: [] });
    },
  );

  // Proves A4.
  it.concurrent(
    'a read that receives 403 with Retry-After met a rate limit, so the worker reads again and sends the message',
    async () => {
      const parameters = { code: 403, words: 'slow down', retryAfter: '1' };
      const following = await follow({}, {}, { name: 'status', parameters, times: 2, ...READ });
      const delivery = { verdict: 'accepted', confirmedBy: 'response', sends: 1 };
      expect(await following.outcomeSummary()).toMatchObject({
        status: 'completed',
        delivery,
        posts: [true],
      });
    },
  );

  it.concurrent(
    'a read that receives 403 without Retry-After ends the follow-up as FollowUpRejected immediately',
    async () => {
      const fault = { name: 'status', parameters: { code: 403 }, times: 1, ...READ };
      const following = await followWithSkippedTime({}, {}, fault);
      const { type, details } = await following.failure();
      expect([type, details.httpStatus, details.receipt.delivery]).toEqual([
        'FollowUpRejected',
        403,
        NOT_SENT_DELIVERY,
      ]);
      expect([following.readCount(), following.posts()]).toEqual([1, []]);
    },
  );
});
