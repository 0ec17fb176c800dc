import { describe, expect, it, jest } from '@jest/globals';
import type { FollowUpClientLike, NamedRequest } from '../../src/client';
import { type Fate, InMemoryFollowUpClient } from '../../src/client/testing';
import { listed } from '../harness/listed';

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'Hello', requestId: 'r' };
const ID = 'follow-up:p:j:r';

describe('the client for tests', () => {
  it('completes a follow-up, and sends nothing by a second start', async () => {
    const client = new InMemoryFollowUpClient();
    const followUps: FollowUpClientLike = client;
    const first = await followUps.start(REQUEST);
    expect(first).toMatchObject({ workflowId: ID, attached: false });
    expect(await first.result()).toMatchObject({
      ...{ id: 'j', status: 'completed', prLink: 'https://example.test/pull/j' },
      receipt: { requestId: 'r', delivery: { verdict: 'accepted', sends: 1 }, evidence: 'seen-active' },
    });
    const notGiven = { prLinkTimeout: undefined, polling: { initial: undefined } };
    const second = await followUps.start({ ...REQUEST, deadline: '1h', ...notGiven });
    expect(second).toMatchObject({ attached: 'ended', promptCompared: true });
    expect(client.sent).toEqual([REQUEST]);
    await expect(second.retry()).rejects.toMatchObject({
      code: 'RETRY_REFUSED',
      receipt: { requestId: 'r' },
    });
    await expect(second.cancel()).rejects.toMatchObject({ code: 'ALREADY_ENDED', state: 'completed' });
  });

  it('refuses what the client refuses, in its words', async () => {
    const followUps = new InMemoryFollowUpClient(() => ({ phase: 'watching' }));
    const refused = async (code: string, call: Promise<unknown>) => {
      await expect(call).rejects.toMatchObject({ code });
    };
    await refused('INVALID_REQUEST', followUps.start({ ...REQUEST, prompt: '' }));
    await followUps.start(REQUEST);
    expect(await followUps.start(REQUEST)).toMatchObject({ attached: 'running' });
    await refused('CONFLICT', followUps.start({ ...REQUEST, prompt: 'Other' }));
    await refused('NOT_FOUND', followUps.getHandle('follow-up:a:b:c').retry());
    await refused('STILL_RUNNING', followUps.getHandle(ID).retry());
    await refused('SERVER_REFUSED', followUps.batches.start([REQUEST]));
    expect(followUps.sent).toEqual([REQUEST]);
  });

  const ACTIVE = { job: { status: 'active' } };
  const delivery = (verdict: string) => ({ receipt: { delivery: { verdict } } });

  it.each<[Fate, string, object, RegExp]>([
    [{ end: 'FollowUpRejected', httpStatus: 403 }, 'REJECTED', { details: { httpStatus: 403 } }, /^$/],
    [{ end: 'DeliveryUnknown' }, 'DELIVERY_UNKNOWN', delivery('unknown'), /retried\. Nobody can tell/],
    [{ end: 'DeadlineExceeded', ...ACTIVE }, 'DEADLINE_EXCEEDED', ACTIVE, /Its message was accepted/],
    [{ end: 'JobNotFound', message: 'gone' }, 'JOB_NOT_FOUND', { message: 'gone' }, /^$/],
    [{ end: 'InvalidRequest' }, 'INVALID_REQUEST', delivery('not-sent'), /^$/],
    [{ end: 'cancelled' }, 'CANCELLED', delivery('accepted'), /retried\. Its message was accepted/],
    [{ end: 'terminated' }, 'TERMINATED', { receipt: null }, /retried\. It left no receipt/],
  ])('ends as %j with %s, and is retried if its receipt proves it', async (fate, code, facts, refused) => {
    const followUps = new InMemoryFollowUpClient(() => fate);
    await expect(followUps.execute(REQUEST)).rejects.toMatchObject({ code, workflowId: ID, ...facts });
    const retried = followUps.getHandle(ID).retry();
    expect(await retried.then(() => '', String)).toMatch(refused);
  });

  it('retries what was not sent, and each run may go another way', async () => {
    const fates: Fate[] = [{ end: 'FollowUpRejected', verdict: 'not-sent' }, { job: { prLink: null } }];
    const asked: NamedRequest[] = [];
    const followUps = new InMemoryFollowUpClient((request) => {
      asked.push(request);
      return fates[asked.length - 1] ?? {};
    });
    const handle = await followUps.start(REQUEST);
    await expect(handle.result()).rejects.toMatchObject({ code: 'REJECTED' });
    expect(followUps.sent).toEqual([]);
    await handle.retry();
    expect(await handle.result()).toMatchObject({ status: 'completed', prLink: null });
    expect([asked, followUps.sent]).toEqual([[REQUEST, REQUEST], [REQUEST]]);
  });

  it('starts nothing where the test’s own code throws, and says what it has thrown', async () => {
    const followUps = new InMemoryFollowUpClient(() => {
      throw new TypeError('no fate for this one');
    });
    const told = { message: expect.stringContaining('fateOf throws TypeError: no fate for this one') };
    await expect(followUps.start(REQUEST)).rejects.toMatchObject(told);
    expect(await listed(followUps.list())).toEqual([]);
  });

  it('is steered as the client is, and listed', async () => {
    const followUps = new InMemoryFollowUpClient(() => ({ phase: 'needs-decision' }));
    const handle = await followUps.start(REQUEST);
    const inDoubt = { phase: 'needs-decision', delivery: { verdict: 'unknown' } };
    expect(await handle.progress()).toMatchObject({ from: 'worker', progress: inDoubt });
    expect(await listed(followUps.list({ phase: 'needs-decision' }))).toEqual([ID]);
    expect(await listed(followUps.list({ phase: 'watching' }))).toEqual([]);
    await expect(handle.resolveDelivery('nonsense' as 'delivered')).rejects.toMatchObject({
      code: 'UPDATE_REFUSED',
      message: expect.stringContaining('decision: must be one of delivered, not-delivered'),
    });
    expect(await handle.resolveDelivery('not-delivered')).toMatchObject({ delivery: { sends: 2 } });
    const message = `The follow-up ${ID} refuses: no decision is needed.`;
    const refused = { code: 'UPDATE_REFUSED', message };
    await expect(handle.resolveDelivery('delivered')).rejects.toMatchObject(refused);
    const { deadlineAt } = await handle.extendDeadline('48h');
    const { startedAt } = await handle.describe();
    expect(Date.parse(deadlineAt) - Date.parse(startedAt)).toBeGreaterThan(24 * 3_600_000);
    expect(await handle.pollNow()).toMatchObject({ phase: 'watching', delivery: { verdict: 'accepted' } });
    expect(await listed(followUps.list({ phase: 'watching' }))).toEqual([ID]);
    const result = handle.result();
    followUps.setFate(ID, { end: 'archived' });
    expect(await result).toMatchObject({ status: 'archived' });
    expect(await handle.describe()).toMatchObject({ outcome: 'archived', jobStatus: 'archived' });
    expect(await listed(followUps.list({ outcome: 'archived' }))).toEqual([ID]);
    expect(await listed(followUps.list({ outcome: 'unknown' }))).toEqual([]);
    expect(() => {
      followUps.setFate(ID, {});
    }).toThrow('has ended');
    expect(followUps.sent).toEqual([REQUEST, REQUEST]);
  });
});

// docs/testing.md shows the other ends of a call.
it('a call that ends early says what it has reached: started, and no worker is there', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
  const followUps = new InMemoryFollowUpClient();
  followUps.setPresence('no-workers');
  const end = followUps.execute(REQUEST, { timeout: 10_000 }).catch((error: unknown) => error);
  await jest.advanceTimersByTimeAsync(10_000);
  jest.useRealTimers();
  expect(await end).toMatchObject({
    ...{ name: 'NoAnswerError', code: 'NO_ANSWER', workflowId: ID },
    message: `The follow-up ${ID} did not respond within 10 s.`,
  });
});
