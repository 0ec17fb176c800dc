import { describe, expect, it } from '@jest/globals';
import { failureOf, QUICK } from '../harness/environment';
import { sharedEnvironment } from '../harness/shared-environment';

const open = sharedEnvironment();

describe('an input that is no request', () => {
  it.concurrent('fails as InvalidRequest with every problem named, and nothing is read or sent', async () => {
    const environment = await open();
    const bad = { projectId: 'bad-input', jobId: '', prompt: 7, deadline: '10', poling: {} };
    const { type, message, details } = await failureOf(await environment.start('bad-input-1', bad));
    expect(type).toBe('InvalidRequest');
    for (const field of ['jobId', 'prompt', 'deadline', '"poling"']) expect(message).toContain(`${field}: `);
    expect(details).toMatchObject({ job: null, followUp: { delivery: { verdict: 'not-sent', sends: 0 } } });
    expect(environment.sandbox.journal.entries({ projectId: 'bad-input' })).toEqual([]);
  });

  it.concurrent.each([
    ['a text', 'hello'],
    ['null', null],
    ['an array', []],
  ])('fails the same way as %s', async (name, input) => {
    const environment = await open();
    const { type, message } = await failureOf(await environment.start(`bad-input-${name}`, input));
    expect(type).toBe('InvalidRequest');
    expect(message).toContain('must be one JSON object');
  });

  it.concurrent('fails when the workflow id is not the derived one, and names the right one', async () => {
    const environment = await open();
    const request = { projectId: 'p', jobId: 'j', prompt: 'x', requestId: 'r' };
    const { type, message } = await failureOf(await environment.start('my-own-id', request));
    expect(type).toBe('InvalidRequest');
    expect(message).toContain('"follow-up:p:j:r"');
  });

  it.concurrent('fails when it looks like a continued run', async () => {
    const environment = await open();
    const forged = { continued: { plan: {}, watch: {} } };
    expect((await failureOf(await environment.start('forged', forged))).type).toBe('InvalidRequest');
  });

  it.concurrent('is named by its workflow id where the request has no name', async () => {
    const environment = await open();
    const job = environment.sandbox.addJob({ projectId: 'unnamed' });
    const request = { projectId: 'unnamed', jobId: job.jobId, prompt: 'x', ...QUICK };
    const handle = await environment.start('nightly/42', request);
    expect(await handle.result()).toMatchObject({ followUp: { requestId: 'nightly/42' } });
  });
});

describe('the baseline', () => {
  it.concurrent('of a job that is not there ends as JobNotFound with nothing sent', async () => {
    const environment = await open();
    const { type, message, details } = await (
      await environment.send({ projectId: 'p', jobId: 'nowhere' })
    ).failure();
    expect({ type, httpStatus: details.httpStatus }).toEqual({ type: 'JobNotFound', httpStatus: 404 });
    expect(message).toContain('Nothing was sent.');
    expect(details.followUp.delivery).toEqual({ verdict: 'not-sent', confirmedBy: null, sends: 0 });
  });

  it.concurrent.each([
    ['400', { name: 'status', parameters: { code: 400 } }],
    ['401', { name: 'unauthorized' }],
    ['403', { name: 'status', parameters: { code: 403 } }],
  ])('that is refused with %s ends as FollowUpRejected with nothing sent', async (status, fault) => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: `refused-${status}` });
    environment.sandbox.setFault({ ...fault, projectId, jobId, operation: 'get' });
    const following = await environment.send({ projectId, jobId });
    const { type, details } = await following.failure();
    expect({ type, httpStatus: details.httpStatus }).toEqual({
      type: 'FollowUpRejected',
      httpStatus: Number(status),
    });
    expect(details.followUp.delivery.verdict).toBe('not-sent');
    expect(following.posts()).toEqual([]);
  });

  it.concurrent.each([
    ['404', { name: 'not-found' }],
    ['401', { name: 'unauthorized' }],
    ['403', { name: 'status', parameters: { code: 403 } }],
  ])('that is answered with %s once the job was read is a delay, and no end', async (status, fault) => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: `read-before-${status}` });
    environment.sandbox.setFault({ ...fault, projectId, jobId, operation: 'get', skip: 1, times: 1 });
    // The first POST is put off, so that the job is looked at once more.
    environment.sandbox.setFault({ name: 'http-429', projectId, jobId, operation: 'message', times: 1 });
    const following = await environment.send({ projectId, jobId });
    expect(await following.result()).toMatchObject({ status: 'completed' });
    expect(following.posts().map(({ processed }) => processed)).toEqual([false, true]);
  });

  it.concurrent('is retried while the service is in trouble, and the trouble is told at once', async () => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'troubled' });
    environment.sandbox.setFault({ name: 'http-503', projectId, jobId, operation: 'get' });
    const following = await environment.send({ projectId, jobId });
    const told = await following.progressWhen(({ nextPollAt }) => nextPollAt !== null);
    expect(told).toMatchObject({ phase: 'baseline', lastAnswer: expect.stringContaining('http 503') });
    environment.sandbox.clearFaults(following.key);
    expect(await following.result()).toMatchObject({ status: 'completed' });
    expect(following.processed()).toBe(1);
  });

  it.concurrent('that can’t be had by the deadline ends as DeadlineExceeded with nothing sent', async () => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'hopeless' });
    environment.sandbox.setFault({ name: 'http-500', projectId, jobId, operation: 'get' });
    const following = await environment.send({ projectId, jobId, deadline: '5s', confirm: '1s' });
    const { type, message } = await following.failure();
    expect(type).toBe('DeadlineExceeded');
    expect(message).toMatch(/http 500.*Nothing was sent\./s);
    expect(following.posts()).toEqual([]);
  });
});

describe('the deadline', () => {
  it.concurrent('counts from the first task of the workflow, not from a start that was delayed', async () => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'delayed' });
    const handle = await environment.client.workflow.start('followUp', {
      taskQueue: environment.taskQueue,
      workflowId: 'delayed-start',
      startDelay: '6s',
      args: [{ projectId, jobId, prompt: 'x', ...QUICK, deadline: '5s', confirm: '500ms' }],
    });
    expect(await handle.result()).toMatchObject({ status: 'completed' });
  });
});

describe('pollNow, again and again while the service is down', () => {
  it.concurrent('is refused before the history is full, and the follow-up goes on', async () => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'large-and-down' });
    environment.sandbox.setFault({ name: 'http-503', projectId, jobId, operation: 'get' });
    // Each try to send records the message once more; 10 MiB of them are enough.
    const prompt = 'x'.repeat(250 * 1_024);
    const polling = { initial: '5m', maximum: '5m' } as const;
    const following = await environment.send({ projectId, jobId, prompt, polling, deadline: '24h' });
    await following.progressWhen(({ nextPollAt }) => nextPollAt !== null);
    let refusal: unknown;
    for (let count = 0; refusal === undefined && count < 60; count += 1)
      refusal = await following.handle.executeUpdate('pollNow').then(
        () => undefined,
        (error: unknown) => error,
      );
    expect(refusal).toMatchObject({ cause: { message: expect.stringContaining('10 MiB, and must last') } });
    const { status, historySize } = await following.handle.describe();
    expect(status.name).toBe('RUNNING');
    expect(historySize).toBeLessThan(12 * 1_024 * 1_024);
    await following.handle.terminate();
  });
});

describe('a job that is active before the send', () => {
  it.concurrent('is waited for with whenActive: wait, and the message begins a turn of its own', async () => {
    const environment = await open();
    const following = await environment.follow(
      { status: 'active', turns: [{ durationMs: 4_000 }, { reads: 2 }] },
      { whenActive: 'wait' },
    );
    const result = await following.result();
    expect(result.followUp).toMatchObject({ baseline: { status: 'completed' }, evidence: 'seen-active' });
    expect(environment.sandbox.job(following.key).turns.map((turn) => turn.state)).toEqual([
      'ended',
      'ended',
    ]);
  });

  it.concurrent('shows the phase waiting meanwhile, and the deadline ends it with nothing sent', async () => {
    const environment = await open();
    const following = await environment.follow(
      { status: 'active', turn: { durationMs: null } },
      { whenActive: 'wait', deadline: '8s' },
    );
    await environment.sandbox.journal.waitFor({ ...following.key, operation: 'get' }, { atLeast: 2 });
    expect(await following.handle.query('progress')).toMatchObject({ phase: 'waiting' });
    expect((await following.failure()).type).toBe('DeadlineExceeded');
    expect(following.posts()).toEqual([]);
  });

  it.concurrent('is left alone with whenActive: reject', async () => {
    const environment = await open();
    const following = await environment.follow(
      { status: 'active', turn: { durationMs: null } },
      { whenActive: 'reject' },
    );
    const { type, message, details } = await following.failure();
    expect(type).toBe('FollowUpRejected');
    expect(message).toContain('The job is active');
    expect(details.followUp.baseline).toMatchObject({ status: 'active' });
    expect(details).not.toHaveProperty('httpStatus');
    expect(following.posts()).toEqual([]);
  });
});
