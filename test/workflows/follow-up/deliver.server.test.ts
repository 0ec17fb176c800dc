import { createHash } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { BY_RESPONSE, UNKNOWN } from '../../harness/following';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open, follow } = sharedEnvironment({ skipsTime: true });

it.concurrent('a message is sent once, and the final job comes back with its pull request', async () => {
  // More reads than those by timers.
  const following = await follow({ turn: { reads: 6 } });
  expect(await following.result()).toEqual({
    ...(await open()).sandbox.job(following.key).job,
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
  const { typedSearchAttributes } = await following.handle.describe();
  const attributes = typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]);
  expect(Object.fromEntries(attributes)).toMatchObject({
    ...{ FollowUpPhase: 'done', FollowUpOutcome: 'completed', AgentJobStatus: 'completed' },
    ...{ AgentProject: following.key.projectId, AgentJob: following.key.jobId },
  });
});

// Proves A1, A5.
it.concurrent.each([
  [
    'of which nobody knows',
    { name: 'reset', operation: 'message' },
    ['DeliveryUnknown', UNKNOWN, /for 2m showed no change.*Nobody can tell whether the message arrived/s],
  ],
  [
    'that is rejected',
    { name: 'status', operation: 'message', parameters: { code: 422 } },
    ['FollowUpRejected', { ...UNKNOWN, verdict: 'rejected' }, /422/],
  ],
] as const)('a message %s fails, and is not sent twice', async (_, fault, [type, delivery, words]) => {
  const following = await follow({}, {}, fault);
  const failure = await following.failure();
  expect(failure).toMatchObject({ type, details: { followUp: { delivery } } });
  expect(failure.message).toMatch(words);
  expect(following.posts()).toHaveLength(1);
});
