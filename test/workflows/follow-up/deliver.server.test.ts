import { createHash } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { BY_RESPONSE, failureOf, type JobFault, UNKNOWN } from '../../harness/following';
import { resetBefore } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { follow } = sharedEnvironment({ skipsTime: true });

/** The message does not arrive, which nobody knows. */
const LOST_ONCE: JobFault = { name: 'reset', operation: 'message', times: 1 };

it.concurrent('a message is sent once, and the final job comes back with its pull request', async () => {
  // More reads than those by timers.
  const following = await follow({ turn: { reads: 6 } });
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
      polls: following.gets() - 1,
      sentAt: expect.stringMatching(/Z$/),
      settledAt: expect.stringMatching(/Z$/),
      observed: { active: 5, completed: following.gets() - 6 },
    },
  });
  const prompt = expect.objectContaining({ text: 'Fix the broken links.' });
  expect(following.posts()).toMatchObject([{ processed: true, prompt }]);
});

// Proves A1.
it.concurrent(
  'a message of which nobody knows and that did not arrive ends as DeliveryUnknown and is not sent twice',
  async () => {
    const following = await follow({}, {}, LOST_ONCE);
    const { type, message, details } = await following.failure();
    expect(type).toBe('DeliveryUnknown');
    expect(message).toMatch(/for 2m showed no change.*Nobody can tell whether the message arrived/s);
    expect(details.followUp.delivery).toEqual(UNKNOWN);
    expect(details.followUp.polls).toBe(following.gets() - 1);
    expect(following.posts()).toHaveLength(1);
  },
);

// Proves A5.
it.concurrent('a message that is rejected ends at once, with the service’s own words', async () => {
  const fault = { name: 'status', operation: 'message', parameters: { code: 422 } } as const;
  const following = await follow({}, {}, fault);
  const { type, details } = await following.failure();
  expect(type).toBe('FollowUpRejected');
  expect(details).toMatchObject({ httpStatus: 422, serviceMessage: expect.any(String) });
  expect(details.followUp.delivery).toEqual({ verdict: 'rejected', confirmedBy: null, sends: 1 });
  expect(following.posts()).toHaveLength(1);
});

// Proves T2.
it.concurrent(
  'a follow-up that is reset to before its send ends as DeliveryUnknown, and nothing is sent',
  async () => {
    const following = await follow();
    await following.result();
    const again = await resetBefore('send', following.handle);
    const ending = { type: 'DeliveryUnknown', delivery: UNKNOWN, evidence: null, posts: [true] };
    expect(await following.ending(again)).toEqual(ending);
    expect((await failureOf(again)).message).toContain('this run was reset to a point before its send');
  },
);
