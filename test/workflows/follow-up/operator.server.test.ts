import { expect, it } from '@jest/globals';
import { WorkflowUpdateFailedError } from '@temporalio/client';
import { payloadText } from '../../harness/encryption';
import { BY_RESPONSE, ENDLESS } from '../../harness/following';
import { eventsOf } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { follow } = sharedEnvironment();

/** Whoever asks for an update is told why it is refused. */
async function expectRefused(update: Promise<unknown>, words: RegExp): Promise<void> {
  const error: unknown = await update.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(WorkflowUpdateFailedError);
  expect((error as WorkflowUpdateFailedError).cause?.message).toMatch(words);
}

it.concurrent('the query progress tells phase, job, delivery, counts and times', async () => {
  const following = await follow(ENDLESS);
  const progress = await following.progressWhen(({ polls, nextPollAt }) => polls > 1 && nextPollAt !== null);
  expect(progress).toEqual({
    phase: 'watching',
    job: following.report().job,
    delivery: BY_RESPONSE,
    evidence: null,
    observed: { active: progress.polls },
    polls: expect.any(Number),
    nextPollAt: expect.stringMatching(/^\d{4}-.*Z$/),
    deadlineAt: expect.stringMatching(/^\d{4}-.*Z$/),
    lastAnswer: 'active',
  });
  await following.handle.terminate();
});

it.concurrent('the update pollNow reads at once and answers with what it has read', async () => {
  const following = await follow(ENDLESS, { polling: { initial: '5m', maximum: '5m' } });
  await following.progressWhen(({ nextPollAt, phase }) => phase === 'watching' && nextPollAt !== null);
  following.changeJob({ status: 'completed', prLink: 'https://example.test/pull/7' });
  expect(await following.update('pollNow')).toMatchObject({ polls: 1, job: { status: 'completed' } });
  const { prLink, followUp } = await following.result();
  expect(prLink).toBe('https://example.test/pull/7');
  // One more when that has held; and one before it where the first was not fresh.
  expect(followUp.evidence).toBe('job-changed');
  expect([2, 3]).toContain(followUp.polls);
});

// Proves P5.
it.concurrent(
  'the update resolveDelivery sends the message again if it is said not to have arrived',
  async () => {
    const asked = { onUnknownDelivery: 'ask', reconcile: '300ms', confirm: '500ms' } as const;
    const following = await follow({}, asked, { name: 'reset', operation: 'message', times: 1 });
    const { doubt } = await following.progressWhen(({ phase }) => phase === 'needs-decision');
    expect(doubt).toMatch(/\. Then reading the job for 300ms showed no change caused by the message\.$/);
    await following.update('resolveDelivery', 'not-delivered');
    const delivery = { ...BY_RESPONSE, sends: 2 };
    expect(await following.ending()).toMatchObject({ delivery, posts: [false, true] });
  },
);

it.concurrent('an update is refused with the reason', async () => {
  const following = await follow(ENDLESS);
  for (const duration of ['10', 10, undefined])
    await expectRefused(following.update('extendDeadline', duration), /^duration: .*"30s"/);
  await following.progressWhen(({ phase }) => phase === 'watching');
  await expectRefused(following.update('resolveDelivery', 'delivered'), /needs-decision only/);
  await expectRefused(following.update('resolveDelivery', 'perhaps'), /./);
  await following.handle.terminate();
});

it.concurrent('an operator sees search attributes that find a follow-up, and no prompt', async () => {
  const following = await follow({ turn: { reads: 3 } }, { prompt: 'a secret wish' });
  await following.result();
  const { typedSearchAttributes } = await following.handle.describe();
  const attributes = typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]);
  expect(Object.fromEntries(attributes)).toMatchObject({
    FollowUpPhase: 'done',
    FollowUpOutcome: 'completed',
    AgentJobStatus: 'completed',
    AgentProject: following.key.projectId,
    AgentJob: following.key.jobId,
  });
  const events = await eventsOf(following.handle);
  const summaries = events.map(({ userMetadata }) => payloadText(userMetadata?.summary));
  expect(summaries).toContain('"look at the job, send the message"');
  expect(summaries).toContain('"ask the worker for its queues and time limits"');
  expect(summaries).toContain('"poll 1"');
  expect(summaries.filter((summary) => summary.startsWith('"poll 1: active, next in '))).toHaveLength(1);
  expect(summaries.join()).not.toContain('secret');
});
