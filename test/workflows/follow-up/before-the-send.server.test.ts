import { describe, expect, it } from '@jest/globals';
import { ENDLESS, failureOf, NOT_SENT, QUICK } from '../../harness/following';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open, follow } = sharedEnvironment();

describe('an input that is no request', () => {
  it.concurrent('fails as InvalidRequest with every problem named, and nothing is read or sent', async () => {
    const environment = await open();
    const bad = { projectId: 'bad-input', jobId: '', prompt: 7, deadline: '10', poling: {} };
    const { type, message, details } = await failureOf(await environment.start('bad-input-1', bad));
    expect(type).toBe('InvalidRequest');
    for (const field of ['jobId', 'prompt', 'deadline', '"poling"']) expect(message).toContain(`${field}: `);
    expect(details).toMatchObject({ job: null, followUp: { delivery: NOT_SENT } });
    expect(environment.sandbox.journal.entries({ projectId: 'bad-input' })).toEqual([]);
  });

  it.concurrent.each([
    ['a text', 'hello', 'must be one JSON object'],
    ['nothing', null, 'must be one JSON object'],
    ['a continued run', { continued: { plan: {}, watch: {} } }, ''],
    // Its workflow id is not the derived one, which the message names.
    ['another follow-up', { projectId: 'p', jobId: 'j', prompt: 'x', requestId: 'r' }, '"follow-up:p:j:r"'],
  ])('fails the same way as %s', async (name, input, words) => {
    const environment = await open();
    const { type, message } = await failureOf(await environment.start(`bad-input-${name}`, input));
    expect(type).toBe('InvalidRequest');
    expect(message).toContain(words);
  });
});

it.concurrent('a request without a name has that of its workflow', async () => {
  const environment = await open();
  const handle = await environment.start('nightly/42', { ...environment.addJob(), prompt: 'x', ...QUICK });
  expect(await handle.result()).toMatchObject({ followUp: { requestId: 'nightly/42' } });
});

describe('the baseline', () => {
  it.concurrent('of a job that is not there ends as JobNotFound with nothing sent', async () => {
    const environment = await open();
    const following = await environment.send({ projectId: 'p', jobId: 'nowhere' });
    const { type, message, details } = await following.failure();
    expect({ type, httpStatus: details.httpStatus }).toEqual({ type: 'JobNotFound', httpStatus: 404 });
    expect(message).toContain('Nothing was sent.');
    expect(details.followUp.delivery).toEqual(NOT_SENT);
  });

  it.concurrent.each([400, 401, 403])(
    'that is refused with %d ends as FollowUpRejected with nothing sent',
    async (code) => {
      const fault = { name: 'status', operation: 'get', parameters: { code } } as const;
      const { type, details } = await (await follow({}, {}, fault)).failure();
      expect(type).toBe('FollowUpRejected');
      expect(details).toMatchObject({ httpStatus: code, followUp: { delivery: NOT_SENT } });
    },
  );

  it.concurrent.each([401, 403, 404])(
    'that is answered with %s once the job was read is a delay, and no end',
    async (code) => {
      const trouble = { name: 'status', operation: 'get', skip: 1, times: 1, parameters: { code } } as const;
      // The first POST is put off, so that the job is looked at once more.
      const later = { name: 'http-429', operation: 'message', times: 1 } as const;
      const following = await follow({}, {}, trouble, later);
      expect(await following.result()).toMatchObject({ status: 'completed' });
      expect(following.processed()).toEqual([false, true]);
    },
  );

  it.concurrent('is retried while the service is in trouble, and the trouble is told at once', async () => {
    const following = await follow({}, {}, { name: 'http-503', operation: 'get' });
    const told = await following.progressWhen(({ nextPollAt }) => nextPollAt !== null);
    expect(told).toMatchObject({ phase: 'baseline', lastAnswer: expect.stringContaining('http 503') });
    following.clearFaults();
    expect(await following.result()).toMatchObject({ status: 'completed' });
    expect(following.processed()).toEqual([true]);
  });

  it.concurrent('that can’t be had by the deadline ends as DeadlineExceeded with nothing sent', async () => {
    const fault = { name: 'http-500', operation: 'get' } as const;
    const following = await follow({}, { deadline: '5s', confirm: '1s' }, fault);
    const { type, message } = await following.failure();
    expect(type).toBe('DeadlineExceeded');
    expect(message).toMatch(/http 500.*Nothing was sent\./s);
    expect(following.posts()).toEqual([]);
  });
});

it.concurrent('the deadline counts from the first task, not from a start that was delayed', async () => {
  const environment = await open();
  const handle = await environment.client.workflow.start('followUp', {
    taskQueue: environment.taskQueue,
    workflowId: 'delayed-start',
    startDelay: '6s',
    args: [{ ...environment.addJob(), prompt: 'x', ...QUICK, deadline: '5s', confirm: '500ms' }],
  });
  expect(await handle.result()).toMatchObject({ status: 'completed' });
});

it.concurrent('pollNow again and again is refused before the history is full; it goes on', async () => {
  // Each try to send records the message once more; 10 MiB of them are enough.
  const prompt = 'x'.repeat(250 * 1_024);
  const polling = { initial: '5m', maximum: '5m' } as const;
  const fault = { name: 'http-503', operation: 'get' } as const;
  const following = await follow({}, { prompt, polling, deadline: '24h' }, fault);
  await following.progressWhen(({ nextPollAt }) => nextPollAt !== null);
  let refusal: unknown;
  for (let count = 0; !(refusal instanceof Error) && count < 60; count += 1)
    refusal = await following.update('pollNow').catch((error: unknown) => error);
  expect(refusal).toMatchObject({ cause: { message: expect.stringContaining('10 MiB, and must last') } });
  const { status, historySize } = await following.handle.describe();
  expect(status.name).toBe('RUNNING');
  expect(historySize).toBeLessThan(12 * 1_024 * 1_024);
  await following.handle.terminate();
});

it.concurrent('a job that is active is waited for until the deadline, and nothing is sent', async () => {
  const following = await follow({ status: 'active', ...ENDLESS }, { whenActive: 'wait', deadline: '8s' });
  await following.reached({ operation: 'get' }, { atLeast: 2 });
  expect(await following.handle.query('progress')).toMatchObject({ phase: 'waiting' });
  expect(await following.ending()).toMatchObject({ type: 'DeadlineExceeded', posts: [] });
});
