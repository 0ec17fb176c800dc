import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type FaultSetting, type JobKey, type NewJob, type Sandbox, startSandbox } from '../../sandbox';
import { failureCode, jobPath, read, send } from './requests';

let sandbox: Sandbox;
let now = Date.parse('2026-01-01T00:00:00Z');

beforeAll(async () => {
  sandbox = await startSandbox({ messagesPerHour: null, now: () => now });
});

afterAll(async () => {
  await sandbox.close();
});

/** A job of its own with a fault on it. */
function faulty(fault: Omit<FaultSetting, 'projectId' | 'jobId'>, job: NewJob = {}): JobKey {
  const { projectId, jobId } = sandbox.addJob({ turn: { durationMs: 1_000 }, ...job });
  sandbox.setFault({ ...fault, projectId, jobId });
  return { projectId, jobId };
}

async function statusCodes({ jobId }: JobKey, reads: number): Promise<number[]> {
  const codes: number[] = [];
  for (let i = 0; i < reads; i += 1) codes.push((await read(sandbox, jobId)).status);
  return codes;
}

/** What so many reads of a job in a row see. */
async function seen({ jobId }: JobKey, field: 'status' | 'prLink', reads: number): Promise<unknown[]> {
  const values: unknown[] = [];
  for (let i = 0; i < reads; i += 1) values.push((await read(sandbox, jobId)).job()[field]);
  return values;
}

describe('answers in the place of the contract', () => {
  it.each([
    ['http-500', 500],
    ['http-503', 503],
    ['http-429', 429],
    ['status', 418],
    ['redirect', 307],
    ['unauthorized', 401],
    ['not-found', 404],
    ['strange-error', 503],
  ])('%s answers %i to both operations and processes nothing', async (name, status) => {
    const job = faulty({ name });
    for (const reply of [await read(sandbox, job.jobId), await send(sandbox, job.jobId, 'x')]) {
      expect(reply.status).toBe(status);
      expect(reply.error()).not.toBe('');
    }
    expect(sandbox.job(job).messages).toBe(0);
  });

  it('status takes the code, http-429 the Retry-After header', async () => {
    const job = faulty({ name: 'status', times: 1, parameters: { code: 529 } });
    sandbox.setFault({ name: 'http-429', ...job, parameters: { retryAfter: 7 } });
    expect((await read(sandbox, job.jobId)).status).toBe(529);
    expect((await read(sandbox, job.jobId)).headers['retry-after']).toBe('7');
  });

  it('redirect leads to the same path', async () => {
    const { jobId } = faulty({ name: 'redirect' });
    expect((await read(sandbox, jobId)).headers.location).toBe(jobPath(jobId));
  });

  it('html answers 200 with a page that is no job, before or after the message is processed', async () => {
    const [before, after] = [
      faulty({ name: 'html' }),
      faulty({ name: 'html', parameters: { processed: 'yes' } }),
    ];
    const replies = [await send(sandbox, before.jobId, 'x'), await send(sandbox, after.jobId, 'x')];
    for (const { status, headers } of replies)
      expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect([sandbox.job(before).messages, sandbox.job(after).messages]).toEqual([0, 1]);
  });

  it.each([
    ['processed-then-500', 500],
    ['processed-then-503', 503],
  ])('%s processes the message and answers %i', async (name, status) => {
    const job = faulty({ name });
    expect((await send(sandbox, job.jobId, 'x')).status).toBe(status);
    expect((await read(sandbox, job.jobId)).status).toBe(200);
    expect(sandbox.job(job).messages).toBe(1);
  });

  it('a read is answered so at once, whatever becomes of messages', async () => {
    const { jobId } = faulty({ name: 'html', parameters: { processed: 'yes' } });
    expect((await read(sandbox, jobId)).text).toContain('Sign in');
  });

  it('processed-then faults act only on messages that the contract takes', async () => {
    const job = faulty({ name: 'processed-then-500' });
    expect((await send(sandbox, job.jobId, '')).status).toBe(400);
    expect((await send(sandbox, job.jobId, 'x', { key: 'sandbox_wrong' })).status).toBe(401);
    expect((await send(sandbox, job.jobId, 'x')).status).toBe(500);
  });
});

describe('connections that end', () => {
  it.each([
    ['close-before-read', 'UND_ERR_SOCKET', 'closed', null, 0],
    ['close-after-read', 'UND_ERR_SOCKET', 'closed', 'x', 0],
    ['reset', 'ECONNRESET', 'reset', 'x', 0],
    ['processed-then-close', 'UND_ERR_SOCKET', 'closed', 'x', 1],
    ['processed-then-reset', 'ECONNRESET', 'reset', 'x', 1],
    ['truncated', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'closed', 'x', 1],
  ] as const)('%s: the caller sees %s', async (name, code, ending, prompt, messages) => {
    const job = faulty({ name });
    expect(await failureCode(send(sandbox, job.jobId, 'x'))).toBe(code);
    const [entry] = await sandbox.journal.waitFor({ ...job, ending });
    expect(entry).toMatchObject({ processed: messages === 1, faults: [name] });
    expect(entry?.prompt?.text ?? null).toBe(prompt);
    expect(sandbox.job(job).messages).toBe(messages);
  });
});

describe('answers that come late or never', () => {
  it.each([
    ['hang', false],
    ['processed-then-timeout', true],
  ])('%s never answers', async (name, processed) => {
    const job = faulty({ name });
    const caller = new AbortController();
    const code = failureCode(send(sandbox, job.jobId, 'x', { signal: caller.signal }));
    await sandbox.journal.waitFor({ ...job, ending: 'pending', fault: name });
    caller.abort();
    expect(await code).toBe('AbortError');
    const [entry] = await sandbox.journal.waitFor({ ...job, ending: 'caller-gone' });
    expect(entry).toMatchObject({ status: null, processed });
  });

  it('slow answers after the time it was told', async () => {
    const { jobId } = faulty({ name: 'slow', parameters: { delay: '120ms' } });
    const startedAt = performance.now();
    expect((await read(sandbox, jobId)).status).toBe(200);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(119);
  });

  it.each([
    ['before', 1, 'answered 200', 1],
    ['after', 0, 'answered 200', 1],
    ['never', 0, 'UND_ERR_SOCKET', 0],
  ])(
    'hold with processed=%s: %i processed while held, then %s',
    async (processed, during, result, afterwards) => {
      const job = faulty({ name: 'hold', parameters: { processed } });
      const code = failureCode(send(sandbox, job.jobId, 'x'));
      await sandbox.journal.waitFor({ ...job, fault: 'hold' });
      // The journal has the fault before the message is processed.
      await sandbox.journal.waitFor({ ...job, processed: during === 1 });
      expect(sandbox.job(job).messages).toBe(during);
      expect(sandbox.release(job)).toBe(1);
      expect(await code).toBe(result);
      expect(sandbox.job(job).messages).toBe(afterwards);
    },
  );

  it('a held message whose caller has gone is processed on release: it arrived late', async () => {
    const job = faulty({ name: 'hold', parameters: { processed: 'after' } });
    const caller = new AbortController();
    const code = failureCode(send(sandbox, job.jobId, 'x', { signal: caller.signal }));
    await sandbox.journal.waitFor({ ...job, fault: 'hold' });
    caller.abort();
    await code;
    await sandbox.journal.waitFor({ ...job, ending: 'caller-gone' });
    expect(sandbox.job(job).messages).toBe(0);
    sandbox.release(job);
    await sandbox.journal.waitFor({ ...job, processed: true });
  });
});

describe('a job that lags or is not what was asked for', () => {
  it('stale answers the state of before for as long as it is told, to the message as well', async () => {
    const job = faulty({ name: 'stale', parameters: { for: '500ms' } }, { status: 'failed' });
    expect(await seen(job, 'status', 1)).toEqual(['failed']);
    expect((await send(sandbox, job.jobId, 'x')).job().status).toBe('failed');
    now += 499;
    expect(await seen(job, 'status', 1)).toEqual(['failed']);
    now += 1;
    expect(await seen(job, 'status', 1)).toEqual(['active']);
  });

  it('lag answers a read with the job as it was a while ago, never longer ago than it is told, and not the message', async () => {
    const job = faulty({ name: 'lag', parameters: { upTo: '400ms' } }, { pullRequest: true });
    const before = (await read(sandbox, job.jobId)).job();
    expect((await send(sandbox, job.jobId, 'x')).job().status).toBe('active');
    now += 200;
    const behind = await seen(job, 'status', 40);
    expect(new Set(behind)).toEqual(new Set(['completed', 'active']));
    now += 200;
    expect(new Set(await seen(job, 'status', 40))).toEqual(new Set(['active']));
    now += 800;
    // Every status may be the old one, not only that before the message.
    expect(new Set(await seen(job, 'status', 40))).toEqual(new Set(['active', 'completed']));
    now += 200;
    expect((await read(sandbox, job.jobId)).job()).toEqual(before);
    const acted = sandbox.journal.entries({ ...job, operation: 'get' }).map(({ faults }) => faults.join());
    expect(acted).toEqual([
      '',
      ...behind.map((status) => (status === 'completed' ? 'lag' : '')),
      ...acted.slice(41),
    ]);
  });

  it('late-take-up accepts a message, and the job goes on as before until the turn begins', async () => {
    const job = faulty({ name: 'late-take-up', parameters: { upTo: '2s' } });
    expect((await send(sandbox, job.jobId, 'x')).job().status).toBe('completed');
    expect(sandbox.job(job)).toMatchObject({ messages: 1, turns: [{ state: 'queued' }] });
    const acceptedAt = now;
    now += 2_000;
    const [turn] = sandbox.job(job).turns;
    expect(turn?.startedAt).toBeGreaterThan(acceptedAt);
    expect(turn?.startedAt).toBeLessThanOrEqual(now);
  });

  it('late-link shows no link until some time after the end of the turn', async () => {
    const job = faulty({ name: 'late-link', parameters: { for: '2s' } });
    await send(sandbox, job.jobId, 'x');
    now += 2_999;
    expect((await read(sandbox, job.jobId)).job()).toMatchObject({ status: 'completed', prLink: null });
    now += 1;
    expect((await read(sandbox, job.jobId)).job().prLink).not.toBeNull();
  });

  it('unknown-status replaces the statuses it is told to, so often as it is told', async () => {
    const job = faulty({
      name: 'unknown-status',
      times: 2,
      parameters: { word: 'paused', 'instead-of': 'active' },
    });
    expect(await seen(job, 'status', 1)).toEqual(['completed']);
    await send(sandbox, job.jobId, 'x');
    expect(await seen(job, 'status', 3)).toEqual(['paused', 'active', 'active']);
  });

  it('invisible-turn is over before anybody can see it, and was a turn', async () => {
    const job = faulty({ name: 'invisible-turn' });
    expect((await send(sandbox, job.jobId, 'x')).job().status).toBe('completed');
    expect(sandbox.job(job).messages).toBe(1);
  });

  it('another-job has another id', async () => {
    const { jobId } = faulty({ name: 'another-job' });
    expect((await send(sandbox, jobId, 'x')).job().id).toBe(`${jobId}-other`);
  });

  it('strange-job puts one text after the other into one field after the other', async () => {
    const { jobId } = faulty({ name: 'strange-job' });
    const answers: string[] = [];
    for (let i = 0; i < 63; i += 1) answers.push((await read(sandbox, jobId)).text);
    expect(new Set(answers).size).toBe(63);
    expect(answers[1]).toContain('"status":"a\\ud800b"');
  });

  it('strange-job keeps to the text and the field that it is told', async () => {
    const job = faulty({ name: 'strange-job', parameters: { field: 'prLink', text: 'number' } });
    expect(await seen(job, 'prLink', 2)).toEqual([42, 42]);
  });

  it('strange-error sends strange words and headers', async () => {
    const { jobId } = faulty({ name: 'strange-error', parameters: { text: 'controls', code: 302 } });
    const reply = await read(sandbox, jobId);
    expect(reply.status).toBe(302);
    expect(reply.error()).toContain('\u001b[2J');
    expect(reply.headers.location).toMatch(/^http:/);
  });
});

describe('what every fault takes', () => {
  it('skip lets the first requests pass, and times ends it', async () => {
    expect(await statusCodes(faulty({ name: 'not-found', skip: 1, times: 2 }), 4)).toEqual([
      200, 404, 404, 200,
    ]);
  });

  it('operation lets the other one pass', async () => {
    const { jobId } = faulty({ name: 'http-500', operation: 'message' });
    expect((await read(sandbox, jobId)).status).toBe(200);
    expect((await send(sandbox, jobId, 'x')).status).toBe(500);
  });

  it('chance is drawn from the seed, so that a run can be repeated', async () => {
    const runs = await Promise.all(
      [7, 7, 8].map(async (seed) => {
        const own = await startSandbox({ seed });
        own.setFault({ name: 'http-503', chance: 0.5 });
        const statuses: number[] = [];
        for (let i = 0; i < 20; i += 1) statuses.push((await read(own, 'job-1')).status);
        await own.close();
        return statuses.join();
      }),
    );
    expect(runs[0]).toBe(runs[1]);
    expect(runs[0]).not.toBe(runs[2]);
    expect(runs[0]).toMatch(/200.*503|503.*200/);
  });

  it('several faults act one after the other, in the order in which they were set', async () => {
    const job = faulty({ name: 'http-503', times: 1 });
    sandbox.setFault({ name: 'not-found', times: 1, ...job });
    sandbox.setFault({ name: 'unknown-status', ...job });
    expect(await statusCodes(job, 2)).toEqual([503, 404]);
    expect(await seen(job, 'status', 1)).toEqual(['hibernating']);
  });

  it('a project and a job aim it, and it is switched off where it was aimed', async () => {
    const job = faulty({ name: 'not-found' }, { projectId: 'aimed' });
    const other = sandbox.addJob();
    sandbox.setFault({ name: 'http-503', projectId: 'aimed' });
    const code = async () => (await fetchJob(job)).status;
    expect([await code(), (await fetchJob(other)).status]).toEqual([404, 200]);
    sandbox.clearFaults(job);
    expect(await code()).toBe(503);
    sandbox.clearFaults({ projectId: 'aimed', jobId: '*' });
    expect(await code()).toBe(200);
  });

  function fetchJob({ projectId, jobId }: JobKey) {
    const headers = { authorization: `Bearer ${sandbox.apiKey}` };
    return fetch(sandbox.baseUrl + jobPath(jobId, projectId), { headers });
  }
});
