import { describe, expect, it } from '@jest/globals';
import type { FollowUpProgress } from '../../src/core/result';
import { sharedEnvironment } from '../harness/shared-environment';

const open = sharedEnvironment();

/** Faults that leave it open whether the message arrived. */
const ARRIVED = [
  'processed-then-close',
  'processed-then-reset',
  'processed-then-500',
  'processed-then-503',
  'processed-then-timeout',
];
/** A turn that outlasts the time-out of the POST and `confirm` after it: only a fresh answer proves a delivery. */
const LASTING = { durationMs: 6_000 };

/** A turn that the message interrupts. */
const LONG = { durationMs: null };

const NOT_ARRIVED = ['close-after-read', 'reset', 'hang', 'html', 'redirect'];

describe('a message of which nobody knows', () => {
  it.concurrent.each(ARRIVED)('after %s is found by reading the job, and is not sent twice', async (name) => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: name, turn: LASTING });
    environment.sandbox.setFault({ name, projectId, jobId, operation: 'message' });
    const following = await environment.send({ projectId, jobId, reconcile: '10s' });
    const { status, followUp } = await following.result();
    expect(status).toBe('completed');
    expect(followUp.delivery).toEqual({ verdict: 'accepted', confirmedBy: 'read', sends: 1 });
    expect(following.posts()).toHaveLength(1);
  });

  it.concurrent.each(NOT_ARRIVED)(
    'after %s, that did not arrive, ends as DeliveryUnknown and is not sent twice',
    async (name) => {
      const environment = await open();
      const { projectId, jobId } = environment.sandbox.addJob({ projectId: name });
      environment.sandbox.setFault({ name, projectId, jobId, operation: 'message' });
      const following = await environment.send({ projectId, jobId });
      const { type, message, details } = await following.failure();
      expect(type).toBe('DeliveryUnknown');
      expect(message).toMatch(
        /reading the job for 2s showed no change.*Nobody can tell whether the message arrived/s,
      );
      expect(details.followUp.delivery).toEqual({ verdict: 'unknown', confirmedBy: null, sends: 1 });
      expect(details.followUp.polls).toBeGreaterThan(0);
      expect(following.posts()).toHaveLength(1);
    },
  );

  it.concurrent(
    'to a job that was active before ends without a window, for reading can tell nothing',
    async () => {
      const environment = await open();
      const { projectId, jobId } = environment.sandbox.addJob({
        projectId: 'active-before',
        status: 'active',
        turn: LONG,
      });
      environment.sandbox.setFault({ name: 'processed-then-close', projectId, jobId });
      const following = await environment.send({ projectId, jobId });
      const { type, message, details } = await following.failure();
      expect(type).toBe('DeliveryUnknown');
      expect(message).toContain('the job was active before');
      expect(details.followUp.polls).toBe(0);
    },
  );

  it.concurrent('is taken as delivered with assume-delivered, and the receipt says so', async () => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({
      projectId: 'assume',
      status: 'active',
      turns: [LONG, {}],
    });
    environment.sandbox.setFault({ name: 'processed-then-close', projectId, jobId });
    const following = await environment.send({ projectId, jobId, onUnknownDelivery: 'assume-delivered' });
    const { followUp } = await following.result();
    expect(followUp.delivery).toEqual({ verdict: 'accepted', confirmedBy: 'assumed', sends: 1 });
  });

  it.concurrent('is sent once more with resend, and the receipt counts both', async () => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'resend' });
    environment.sandbox.setFault({ name: 'reset', projectId, jobId, operation: 'message', times: 1 });
    const following = await environment.send({ projectId, jobId, onUnknownDelivery: 'resend' });
    const { followUp } = await following.result();
    expect(followUp.delivery).toEqual({ verdict: 'accepted', confirmedBy: 'response', sends: 2 });
    expect(following.posts().map((post) => post.processed)).toEqual([false, true]);
  });

  it.concurrent('is not sent a third time with resend', async () => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'resend-twice' });
    environment.sandbox.setFault({ name: 'reset', projectId, jobId, operation: 'message' });
    const following = await environment.send({
      projectId,
      jobId,
      onUnknownDelivery: 'resend',
      reconcile: '500ms',
    });
    const { type, details } = await following.failure();
    expect(type).toBe('DeliveryUnknown');
    expect(details.followUp.delivery.sends).toBe(2);
    expect(following.posts()).toHaveLength(2);
  });
});

describe('a message of which nobody knows, with ask', () => {
  async function asking(projectId: string, deadline: `${number}s` = '20s') {
    const environment = await open();
    const { jobId } = environment.sandbox.addJob({ projectId });
    environment.sandbox.setFault({ name: 'reset', projectId, jobId, operation: 'message', times: 1 });
    const asked = { onUnknownDelivery: 'ask', reconcile: '300ms', confirm: '500ms', deadline } as const;
    const following = await environment.send({ projectId, jobId, ...asked });
    await following.progressWhen(({ phase }) => phase === 'needs-decision');
    const decide = (decision: string) =>
      following.handle.executeUpdate<FollowUpProgress, [string]>('resolveDelivery', { args: [decision] });
    return { environment, following, decide };
  }

  it.concurrent('is watched after an operator has said that it arrived', async () => {
    const { following, decide } = await asking('ask-delivered');
    expect(await decide('delivered')).toMatchObject({
      delivery: { verdict: 'accepted', confirmedBy: 'operator' },
    });
    expect((await following.result()).followUp.evidence).toBe('confirmed');
    expect(following.posts()).toHaveLength(1);
  });

  it.concurrent('is sent again after an operator has said that it did not arrive', async () => {
    const { following, decide } = await asking('ask-not-delivered');
    await decide('not-delivered');
    const { followUp } = await following.result();
    expect(followUp.delivery).toEqual({ verdict: 'accepted', confirmedBy: 'response', sends: 2 });
    expect(following.posts().map((post) => post.processed)).toEqual([false, true]);
  });

  it.concurrent('asks again when the further POST is unknown too', async () => {
    const { environment, following, decide } = await asking('ask-twice');
    environment.sandbox.setFault({ name: 'reset', ...following.key, operation: 'message', times: 1 });
    await decide('not-delivered');
    await environment.sandbox.journal.waitFor({ ...following.key, operation: 'message' }, { atLeast: 2 });
    await following.progressWhen(({ phase }) => phase === 'needs-decision');
    await decide('delivered');
    expect((await following.result()).followUp.delivery).toMatchObject({ confirmedBy: 'operator', sends: 2 });
  });

  it.concurrent('takes no other word', async () => {
    const { following, decide } = await asking('ask-nonsense');
    await expect(decide('perhaps')).rejects.toThrow();
    await following.handle.terminate();
  });

  it.concurrent('goes on by itself when the job moves meanwhile', async () => {
    const { environment, following } = await asking('ask-moved');
    environment.sandbox.changeJob(following.key, { status: 'failed' });
    const { status, followUp } = await following.result();
    expect({ status, delivery: followUp.delivery.confirmedBy }).toEqual({
      status: 'failed',
      delivery: 'read',
    });
  });

  it.concurrent('ends by the deadline', async () => {
    const { following } = await asking('ask-deadline', '6s');
    const { type, details } = await following.failure();
    expect({ type, verdict: details.followUp.delivery.verdict }).toEqual({
      type: 'DeadlineExceeded',
      verdict: 'unknown',
    });
  });
});

describe('a message that was certainly not processed', () => {
  it.concurrent('is sent again after a 429, by its Retry-After', async () => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'limited' });
    environment.sandbox.setFault({
      name: 'http-429',
      projectId,
      jobId,
      operation: 'message',
      times: 2,
      parameters: { retryAfter: 2 },
    });
    const following = await environment.send({ projectId, jobId });
    const { followUp } = await following.result();
    expect(followUp.delivery).toEqual({ verdict: 'accepted', confirmedBy: 'response', sends: 3 });
    const times = following.posts().map((post) => Date.parse(post.time));
    expect(times).toHaveLength(3);
    expect(
      Math.min((times[1] ?? 0) - (times[0] ?? 0), (times[2] ?? 0) - (times[1] ?? 0)),
    ).toBeGreaterThanOrEqual(2_000);
  });

  it.concurrent('is not sent after the deadline', async () => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'limited-for-ever' });
    environment.sandbox.setFault({
      name: 'http-429',
      projectId,
      jobId,
      operation: 'message',
      parameters: { retryAfter: 999_999_999 },
    });
    const following = await environment.send({ projectId, jobId, deadline: '6s' });
    const { type, message, details } = await following.failure();
    expect(type).toBe('DeadlineExceeded');
    expect(message).toContain('The service has processed nothing.');
    expect(details.followUp.delivery).toMatchObject({ verdict: 'not-sent', sends: 1 });
    expect(following.processed()).toBe(0);
  });
});

describe('a message that is rejected', () => {
  it.concurrent.each([400, 403, 404, 409, 422])(
    'with %d ends at once, with the service’s own words',
    async (code) => {
      const environment = await open();
      const { projectId, jobId } = environment.sandbox.addJob({ projectId: `rejected-${code}` });
      environment.sandbox.setFault({
        name: 'status',
        projectId,
        jobId,
        operation: 'message',
        parameters: { code },
      });
      const following = await environment.send({ projectId, jobId });
      const { type, details } = await following.failure();
      expect(type).toBe('FollowUpRejected');
      expect(details).toMatchObject({ httpStatus: code, serviceMessage: expect.any(String) });
      expect(details.followUp.delivery).toEqual({ verdict: 'rejected', confirmedBy: null, sends: 1 });
      expect(following.posts()).toHaveLength(1);
    },
  );
});
