import { describe, expect, it } from '@jest/globals';
import { WorkflowFailedError, WorkflowUpdateFailedError } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import type { FollowUpProgress } from '../../src/core/result';
import { payloadText } from '../harness/encryption';
import { type Following } from '../harness/environment';
import { sharedEnvironment } from '../harness/shared-environment';

const open = sharedEnvironment();

/** A turn that ends only when the test says so. */
const endless = { turn: { durationMs: null } };

async function update(following: Following, name: string, argument?: unknown): Promise<FollowUpProgress> {
  return following.handle.executeUpdate<FollowUpProgress, [unknown]>(name, { args: [argument] });
}

async function cancelled(following: Following) {
  const error: unknown = await following.handle.result().catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(WorkflowFailedError);
  expect((error as WorkflowFailedError).cause).toBeInstanceOf(CancelledFailure);
  return (await following.handle.describe()).memo?.followUp;
}

describe('the query progress', () => {
  it.concurrent('tells phase, job, delivery, counts and times', async () => {
    const environment = await open();
    const following = await environment.follow(endless);
    const progress = await following.progressWhen(
      ({ polls, nextPollAt }) => polls > 1 && nextPollAt !== null,
    );
    expect(progress).toEqual({
      phase: 'watching',
      job: environment.sandbox.job(following.key).job,
      delivery: { verdict: 'accepted', confirmedBy: 'response', sends: 1 },
      evidence: null,
      observed: { active: progress.polls },
      polls: expect.any(Number),
      nextPollAt: expect.stringMatching(/^\d{4}-.*Z$/),
      deadlineAt: expect.stringMatching(/^\d{4}-.*Z$/),
      lastAnswer: 'active',
    });
    await following.handle.terminate();
  });
});

describe('the update pollNow', () => {
  it.concurrent('reads at once and answers with what it has read', async () => {
    const environment = await open();
    const slow = { polling: { initial: '15s', maximum: '15s' } } as const;
    const following = await environment.follow(endless, slow);
    await following.progressWhen(({ nextPollAt, phase }) => phase === 'watching' && nextPollAt !== null);
    environment.sandbox.changeJob(following.key, {
      status: 'completed',
      prLink: 'https://example.test/pull/7',
    });
    expect(await update(following, 'pollNow')).toMatchObject({ polls: 1, job: { status: 'completed' } });
    expect(await following.result()).toMatchObject({
      prLink: 'https://example.test/pull/7',
      // One more when an answer is fresh, and one when that has held.
      followUp: { polls: 3, evidence: 'job-changed' },
    });
  });

  it.concurrent('is refused while the message is being sent', async () => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'poll-now-sending' });
    environment.sandbox.setFault({ name: 'hold', projectId, jobId, operation: 'message' });
    const following = await environment.send({ projectId, jobId });
    await environment.sandbox.journal.waitFor({ projectId, operation: 'message' });
    await expect(update(following, 'pollNow')).rejects.toBeInstanceOf(WorkflowUpdateFailedError);
    environment.sandbox.release({ projectId, jobId });
    await following.result();
  });
});

describe('the update extendDeadline', () => {
  it.concurrent('moves the deadline, and the watch goes on beyond the old one', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { deadline: '6s', confirm: '1s' });
    const before = await following.progressWhen(({ phase }) => phase === 'watching');
    const after = await update(following, 'extendDeadline', '20s');
    expect(Date.parse(after.deadlineAt)).toBeGreaterThan(Date.parse(before.deadlineAt));
    await environment.sandbox.journal.waitFor({ ...following.key, operation: 'get' });
    await following.progressWhen(() => Date.now() > Date.parse(before.deadlineAt) + 500);
    environment.sandbox.changeJob(following.key, { status: 'failed' });
    expect((await following.result()).status).toBe('failed');
  });

  it.concurrent('never moves it to an earlier time', async () => {
    const environment = await open();
    const following = await environment.follow(endless);
    const before = await following.progressWhen(({ phase }) => phase === 'watching');
    expect((await update(following, 'extendDeadline', '1s')).deadlineAt).toBe(before.deadlineAt);
    await following.handle.terminate();
  });

  it.concurrent.each([['10'], [10], ['soon'], [undefined]])(
    'refuses %j, and says what is right',
    async (duration) => {
      const environment = await open();
      const following = await environment.follow(endless);
      const refusal: unknown = await update(following, 'extendDeadline', duration).catch(
        (error: unknown) => error,
      );
      expect(refusal).toBeInstanceOf(WorkflowUpdateFailedError);
      expect((refusal as WorkflowUpdateFailedError).cause?.message).toMatch(/^duration: .*"30s"/);
      await following.handle.terminate();
    },
  );
});

describe('the update resolveDelivery', () => {
  it.concurrent('is refused while there is nothing to decide', async () => {
    const environment = await open();
    const following = await environment.follow(endless);
    const refusal: unknown = await update(following, 'resolveDelivery', 'delivered').catch(
      (error: unknown) => error,
    );
    expect(refusal).toBeInstanceOf(WorkflowUpdateFailedError);
    expect((refusal as WorkflowUpdateFailedError).cause?.message).toContain('needs-decision only');
    await following.handle.terminate();
  });
});

describe('a cancelled follow-up', () => {
  it.concurrent('ends its watch at once and leaves the receipt in the memo', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: { initial: '15s', maximum: '15s' } });
    await following.progressWhen(({ phase }) => phase === 'watching');
    const cancelledAt = Date.now();
    await following.handle.cancel();
    expect(await cancelled(following)).toMatchObject({
      requestId: following.request.requestId,
      delivery: { verdict: 'accepted', sends: 1 },
      settledAt: expect.any(String),
    });
    expect(Date.now() - cancelledAt).toBeLessThan(12_000);
    expect(environment.sandbox.job(following.key).job.status).toBe('active');
  });

  it.concurrent('awaits a POST that is under way, whose outcome is in the receipt', async () => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'cancel-in-send', ...endless });
    environment.sandbox.setFault({ name: 'hold', projectId, jobId, operation: 'message' });
    const following = await environment.send({ projectId, jobId });
    await environment.sandbox.journal.waitFor({ projectId, operation: 'message' });
    await following.handle.cancel();
    environment.sandbox.release({ projectId, jobId });
    expect(await cancelled(following)).toMatchObject({ delivery: { verdict: 'accepted', sends: 1 } });
    expect(following.processed()).toBe(1);
  });

  it.concurrent('before the send has sent nothing', async () => {
    const environment = await open();
    const following = await environment.follow({ status: 'active', ...endless }, { whenActive: 'wait' });
    await following.progressWhen(({ phase }) => phase === 'waiting');
    await following.handle.cancel();
    expect(await cancelled(following)).toMatchObject({ delivery: { verdict: 'not-sent', sends: 0 } });
    expect(following.posts()).toEqual([]);
  });
});

describe('what an operator sees', () => {
  it.concurrent('are search attributes by which a follow-up is found, and no prompt', async () => {
    const environment = await open();
    const following = await environment.follow({ turn: { durationMs: 4_000 } }, { prompt: 'a secret wish' });
    await following.result();
    const description = await following.handle.describe();
    const attributes = description.typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]);
    expect(Object.fromEntries(attributes)).toMatchObject({
      FollowUpPhase: 'done',
      AgentJobStatus: 'completed',
      AgentProject: following.key.projectId,
      AgentJob: following.key.jobId,
    });
    const { events } = await following.handle.fetchHistory();
    const summaries = (events ?? []).map(({ userMetadata }) => payloadText(userMetadata?.summary));
    expect(summaries).toContain('"look at the job, send the message"');
    expect(summaries).toContain('"poll 1"');
    expect(summaries.filter((summary) => summary.startsWith('"poll 1: active, next in '))).toHaveLength(1);
    expect(summaries.join()).not.toContain('secret');
  });
});
