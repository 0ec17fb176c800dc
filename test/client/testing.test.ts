import { describe, expect, it, jest } from '@jest/globals';
import type { FollowUpClientLike, NamedRequest } from '../../src/entries/client';
import { InMemoryFollowUpClient, type SimulatedOutcome } from '../../src/entries/testing';
import { collectWorkflowIds } from '../harness/workflow-ids';

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'Hello', requestId: 'r' };
const ID = 'follow-up:p:j:r';

const delivery = (verdict: string) => ({ receipt: { delivery: { verdict } } });

describe('InMemoryFollowUpClient', () => {
  it('completes a follow-up, and a second start attaches without sending', async () => {
    const client = new InMemoryFollowUpClient();
    const followUps: FollowUpClientLike = client;
    const first = await followUps.start(REQUEST);
    expect(first).toMatchObject({ workflowId: ID, attached: false });
    expect(await first.result()).toMatchObject({
      ...{ id: 'j', status: 'completed', prLink: 'https://example.test/pull/j' },
      receipt: {
        requestId: 'r',
        delivery: { verdict: 'accepted', confirmedBy: 'response', sends: 1 },
        evidence: 'seen-active',
        responseCounts: { active: 1, completed: 1 },
      },
    });
    const undefinedFields = { prLinkTimeout: undefined, polling: { initial: undefined } };
    const second = await followUps.start({ ...REQUEST, deadline: '1h', ...undefinedFields });
    expect(second).toMatchObject({ attached: 'ended', promptCompared: true });
    expect(client.sent).toEqual([REQUEST]);
    await expect(second.retry()).rejects.toMatchObject({
      code: 'RETRY_NOT_ALLOWED',
      receipt: { requestId: 'r' },
    });
    await expect(second.cancel()).rejects.toMatchObject({ code: 'ALREADY_ENDED', state: 'completed' });
  });

  it('rejects invalid calls with the same codes as the real client', async () => {
    const followUps = new InMemoryFollowUpClient(() => ({ phase: 'watching' }));
    const rejects = async (code: string, call: Promise<unknown>) => {
      await expect(call).rejects.toMatchObject({ code });
    };
    await rejects('INVALID_REQUEST', followUps.start({ ...REQUEST, prompt: '' }));
    await rejects('INVALID_REQUEST', followUps.start(REQUEST, { startDelay: '5' as '5s' }));
    await rejects('INVALID_REQUEST', followUps.start(REQUEST, { startDelai: '5s' } as object));
    await followUps.start(REQUEST);
    expect(await followUps.start(REQUEST)).toMatchObject({ attached: 'running' });
    await rejects('CONFLICT', followUps.start({ ...REQUEST, prompt: 'Other' }));
    await rejects('NOT_FOUND', followUps.getHandle('follow-up:a:b:c').retry());
    await rejects('STILL_RUNNING', followUps.getHandle(ID).retry());
    await rejects('SERVER_ERROR', followUps.batches.start([REQUEST]));
    await rejects('SERVER_ERROR', followUps.schedules.create('s', [REQUEST], { spec: {} }));
    expect(followUps.sent).toEqual([REQUEST]);
    await followUps.close();
    await rejects('CLIENT_CLOSED', followUps.getHandle(ID).describe());
  });

  it.each<[SimulatedOutcome, string, object, RegExp]>([
    [{ end: 'FollowUpRejected', httpStatus: 403 }, 'REJECTED', { details: { httpStatus: 403 } }, /^$/],
    [{ end: 'FollowUpRejected', verdict: 'not-sent' }, 'REJECTED', delivery('not-sent'), /^$/],
    [{ end: 'DeliveryUnknown' }, 'DELIVERY_UNKNOWN', delivery('unknown'), /retried\. It is unknown/],
    [{ end: 'DeadlineExceeded' }, 'DEADLINE_EXCEEDED', { job: { status: 'active' } }, /message was accepted/],
    [{ end: 'DeadlineExceeded', verdict: 'not-sent' }, 'DEADLINE_EXCEEDED', delivery('not-sent'), /^$/],
    [
      { end: 'DeadlineExceeded', verdict: 'unknown' },
      'DEADLINE_EXCEEDED',
      delivery('unknown'),
      /It is unknown/,
    ],
    [{ end: 'JobNotFound', message: 'missing' }, 'JOB_NOT_FOUND', { message: 'missing' }, /^$/],
    [{ end: 'JobNotFound', verdict: 'accepted' }, 'JOB_NOT_FOUND', delivery('accepted'), /accepted/],
    [{ end: 'InvalidRequest' }, 'INVALID_REQUEST', delivery('not-sent'), /^$/],
    [{ end: 'cancelled' }, 'CANCELLED', delivery('accepted'), /retried\. The message was accepted/],
    [{ end: 'cancelled', verdict: 'not-sent' }, 'CANCELLED', delivery('not-sent'), /^$/],
    [{ end: 'terminated' }, 'TERMINATED', { receipt: null }, /retried\. The receipt is missing/],
    [{ end: 'timed-out' }, 'WORKFLOW_TIMED_OUT', { receipt: null }, /retried\. The receipt is missing/],
  ])('ends as %j with %s, and the receipt decides on a retry', async (outcome, code, facts, problem) => {
    const followUps = new InMemoryFollowUpClient(() => outcome);
    await expect(followUps.execute(REQUEST)).rejects.toMatchObject({ code, workflowId: ID, ...facts });
    const retried = followUps.getHandle(ID).retry();
    expect(await retried.then(() => '', String)).toMatch(problem);
  });

  it.each<[NonNullable<SimulatedOutcome['phase']>, string]>([
    ['starting', 'not-sent'],
    ['waiting-for-job', 'not-sent'],
    ['sending', 'not-sent'],
    ['unauthorized', 'not-sent'],
    ['reconciling', 'unknown'],
    ['needs-decision', 'unknown'],
    ['watching', 'accepted'],
    ['confirming', 'accepted'],
    ['waiting-for-link', 'accepted'],
  ])('stays in the phase %s with the verdict %s until a later outcome', async (phase, verdict) => {
    const followUps = new InMemoryFollowUpClient(() => ({ phase }));
    const handle = await followUps.start(REQUEST);
    const progress = { phase, delivery: { verdict } };
    expect(await handle.progress()).toMatchObject({ from: 'worker', progress });
    expect(await handle.pollNow()).toMatchObject(progress);
    expect(await collectWorkflowIds(followUps.list({ phase }))).toEqual([ID]);
    followUps.setOutcome(ID, {});
    expect(await handle.result()).toMatchObject({ status: 'completed', ...delivery('accepted') });
  });

  it('rejects an outcome that no follow-up can have, and the follow-up keeps its state', async () => {
    const followUps = new InMemoryFollowUpClient(() => ({ phase: 'watching' }));
    const handle = await followUps.start(REQUEST);
    expect(() => {
      followUps.setOutcome(ID, { end: 'FollowUpRejected' });
    }).toThrow('The follow-up can\'t get the outcome {"end":"FollowUpRejected"}. The simulation ends with ');
    expect(await handle.progress()).toMatchObject({ progress: { phase: 'watching' } });
  });

  it('retries a follow-up whose message was not sent, and each run gets its own outcome', async () => {
    const outcomes: SimulatedOutcome[] = [
      { end: 'FollowUpRejected', verdict: 'not-sent' },
      { job: { prLink: null } },
    ];
    const requests: NamedRequest[] = [];
    const followUps = new InMemoryFollowUpClient((request) => {
      requests.push(request);
      return outcomes[requests.length - 1] ?? {};
    });
    const handle = await followUps.start(REQUEST);
    await expect(handle.result()).rejects.toMatchObject({ code: 'REJECTED' });
    expect(followUps.sent).toEqual([]);
    expect(await (await handle.retry()).result()).toMatchObject({ status: 'completed', prLink: null });
    expect([requests, followUps.sent]).toEqual([[REQUEST, REQUEST], [REQUEST]]);
  });

  it('starts nothing if the test’s outcome function throws, and reports its error', async () => {
    const followUps = new InMemoryFollowUpClient(() => {
      throw new TypeError('no outcome for this request');
    });
    const error = { message: expect.stringContaining('no outcome for this request') };
    for (const availability of ['all', 'no-workers'] as const) {
      followUps.setAvailability(availability);
      await expect(followUps.start(REQUEST)).rejects.toMatchObject(error);
      expect(await collectWorkflowIds(followUps.list())).toEqual([]);
    }
  });

  it('accepts the updates of an operator, and lists the follow-up by phase, outcome and project', async () => {
    const followUps = new InMemoryFollowUpClient(() => ({ phase: 'needs-decision' }));
    const handle = await followUps.start(REQUEST);
    expect(await collectWorkflowIds(followUps.list({ phase: 'watching' }))).toEqual([]);
    await expect(handle.resolveDelivery('nonsense' as 'delivered')).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('decision: must be one of delivered, not-delivered'),
    });
    expect(await handle.resolveDelivery('not-delivered')).toMatchObject({
      phase: 'watching',
      delivery: { verdict: 'accepted', confirmedBy: 'response', sends: 2 },
    });
    const words = 'the follow-up is watching; a decision is accepted only in the phase needs-decision';
    const rejection = { code: 'UPDATE_REJECTED', message: expect.stringContaining(words) };
    await expect(handle.resolveDelivery('delivered')).rejects.toMatchObject(rejection);
    await expect(handle.extendDeadline('48' as '48h')).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    const { deadlineAt } = await handle.extendDeadline('48h');
    const { startedAt } = await handle.describe();
    expect(Date.parse(deadlineAt) - Date.parse(startedAt)).toBeGreaterThan(24 * 3_600_000);
    expect(await collectWorkflowIds(followUps.list({ phase: 'watching' }))).toEqual([ID]);
    const result = handle.result();
    followUps.setOutcome(ID, { end: 'archived' });
    expect(await result).toMatchObject({ status: 'archived' });
    expect(await handle.describe()).toMatchObject({ outcome: 'archived', jobStatus: 'archived' });
    expect(await collectWorkflowIds(followUps.list({ outcome: 'archived', projectId: 'p' }))).toEqual([ID]);
    expect(await collectWorkflowIds(followUps.list({ outcome: 'unknown' }))).toEqual([]);
    expect(await collectWorkflowIds(followUps.list({ jobId: 'other' }))).toEqual([]);
    expect(() => {
      followUps.setOutcome(ID, {});
    }).toThrow('has ended');
    expect(followUps.sent).toEqual([REQUEST, REQUEST]);
  });

  it('records in the receipt that an operator decided the message was delivered', async () => {
    const followUps = new InMemoryFollowUpClient(() => ({ phase: 'needs-decision' }));
    const handle = await followUps.start(REQUEST);
    const decided = { verdict: 'accepted', confirmedBy: 'operator', sends: 1 };
    expect(await handle.resolveDelivery('delivered')).toMatchObject({ phase: 'watching', delivery: decided });
    followUps.setOutcome(ID, { end: 'failed' });
    expect(await handle.result()).toMatchObject({ status: 'failed', receipt: { delivery: decided } });
  });

  it('keeps the receipt of a cancelled follow-up', async () => {
    const followUps = new InMemoryFollowUpClient(() => ({ phase: 'watching' }));
    const handle = await followUps.start(REQUEST);
    await handle.cancel();
    await expect(handle.result()).rejects.toMatchObject({ code: 'CANCELLED', ...delivery('accepted') });
    expect(await handle.describe()).toMatchObject({ state: 'cancelled', phase: 'cancelled' });
  });

  it('starts a follow-up after its start delay, and rejects earlier updates', async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
    try {
      const followUps = new InMemoryFollowUpClient();
      const handle = await followUps.start(REQUEST, { startDelay: '2h' });
      const { startedAt, startsAt } = await handle.describe();
      expect(Date.parse(startsAt ?? '') - Date.parse(startedAt)).toBe(7_200_000);
      await expect(handle.pollNow()).rejects.toMatchObject({
        message: `The update of the follow-up ${ID} was rejected: the follow-up has not started; it starts at ${startsAt ?? ''}.`,
      });
      expect(await handle.progress()).toMatchObject({ from: 'server', workers: 1 });
      expect(followUps.sent).toEqual([]);
      await jest.advanceTimersByTimeAsync(7_200_000);
      expect(await handle.result()).toMatchObject({ status: 'completed' });
      expect(await handle.describe()).toMatchObject({ startsAt: null });
    } finally {
      jest.useRealTimers();
    }
  });

  it('simulates missing workers, and reports the number of workers', async () => {
    const followUps = new InMemoryFollowUpClient();
    followUps.setAvailability('no-workers');
    const handle = await followUps.start(REQUEST);
    const description = { phase: 'starting', state: 'running' };
    expect(await handle.progress()).toMatchObject({ from: 'server', workers: 0, description });
    const words = 'no worker polls the task queue "follow-up"; start a worker';
    await expect(handle.pollNow()).rejects.toMatchObject({
      code: 'WAIT_TIMEOUT',
      message: `The follow-up ${ID} did not respond within 2 s: ${words}.`,
    });
    followUps.setAvailability('all');
    expect(await handle.result()).toMatchObject({ status: 'completed' });
  });

  it('waits for a result while the Temporal server is unreachable, and all other calls fail', async () => {
    const followUps = new InMemoryFollowUpClient();
    const handle = await followUps.start(REQUEST);
    followUps.setAvailability('unreachable');
    await expect(handle.describe()).rejects.toMatchObject({ code: 'UNREACHABLE' });
    await expect(followUps.start(REQUEST)).rejects.toMatchObject({
      code: 'START_UNCONFIRMED',
      workflowId: ID,
    });
    const result = handle.result();
    followUps.setAvailability('all');
    expect(await result).toMatchObject({ status: 'completed' });
  });
});

// docs/testing.md has examples of the other outcomes of a call.
it('a call that times out while it waits reports the follow-up that it started', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
  const followUps = new InMemoryFollowUpClient();
  followUps.setAvailability('no-workers');
  const end = followUps.execute(REQUEST, { timeout: 10_000 }).catch((error: unknown) => error);
  await jest.advanceTimersByTimeAsync(10_000);
  jest.useRealTimers();
  expect(await end).toMatchObject({
    ...{ name: 'WaitTimeoutError', code: 'WAIT_TIMEOUT', workflowId: ID },
    message: `The call for the follow-up ${ID} did not end within 10 s. The timeout ends only the call.`,
  });
});
