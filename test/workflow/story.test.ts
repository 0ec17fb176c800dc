import { describe, expect, it } from '@jest/globals';
import { sharedEnvironment } from '../harness/shared-environment';

const open = sharedEnvironment();

describe('a follow-up', () => {
  it.concurrent('sends the message once and returns the final job with its pull request', async () => {
    const environment = await open();
    const following = await environment.follow({ turn: { reads: 2 } });
    const result = await following.result();
    expect(result).toEqual({
      ...environment.sandbox.job(following.key).job,
      status: 'completed',
      prLink: expect.stringContaining('/pull/'),
      followUp: {
        requestId: following.request.requestId,
        delivery: { verdict: 'accepted', confirmedBy: 'response', sends: 1 },
        evidence: 'seen-active',
        baseline: { status: 'completed', prLink: null, archivedAt: null },
        polls: expect.any(Number),
        sentAt: expect.stringMatching(/Z$/),
        settledAt: expect.stringMatching(/Z$/),
        observed: expect.objectContaining({ completed: 1 }),
      },
    });
    expect(following.posts()).toEqual([
      expect.objectContaining({
        processed: true,
        prompt: expect.objectContaining({ text: 'Fix the broken links.' }),
      }),
    ]);
  });
});
