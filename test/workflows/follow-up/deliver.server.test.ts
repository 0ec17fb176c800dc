import { createHash } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { BY_RESPONSE, failureOf, NOT_SENT } from '../../harness/following';
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

it.concurrent(
  'a request without a name has that of its workflow; its deadline counts from the first task',
  async () => {
    const environment = await open();
    const handle = await environment.client.workflow.start('followUp', {
      taskQueue: environment.taskQueue,
      workflowId: 'nightly/42',
      startDelay: '2 hours',
      args: [{ ...environment.addJob(), prompt: 'x', deadline: '1h' }],
    });
    const followUp = { requestId: 'nightly/42' };
    expect(await handle.result()).toMatchObject({ status: 'completed', followUp });
  },
);

it.concurrent.each([
  ['null', null, ['must be one JSON object']],
  ['mistakes', { projectId: 'bad', jobId: '', prompt: 7, poling: {} }, ['jobId: ', 'prompt: ', '"poling": ']],
])('an input of %s fails with every problem, and nothing is read or sent', async (name, input, words) => {
  const environment = await open();
  const { type, message, details } = await failureOf(await environment.start(`bad-input-${name}`, input));
  expect(type).toBe('InvalidRequest');
  for (const word of words) expect(message).toContain(word);
  expect(details).toMatchObject({ job: null, followUp: { delivery: NOT_SENT } });
  expect(environment.sandbox.journal.entries({ projectId: 'bad' })).toEqual([]);
});
