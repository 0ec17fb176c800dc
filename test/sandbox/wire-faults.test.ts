import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type FaultSetting, type JobKey, type Sandbox, startSandbox } from '../../sandbox';
import { failureCode, jobPath, read, send } from './requests';

let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = await startSandbox({ turnMs: 60_000, messagesPerHour: null });
});

afterAll(async () => {
  await sandbox.close();
});

/** A job of its own with a fault on it. */
function faulty(fault: Omit<FaultSetting, 'projectId' | 'jobId'>): JobKey {
  const job = sandbox.addJob();
  sandbox.setFault({ ...fault, projectId: job.projectId, jobId: job.jobId });
  return { projectId: job.projectId, jobId: job.jobId };
}

/** A signal for requests that are never answered; the test goes on once the sandbox has seen what it waits for. */
function giveUp(): AbortController {
  return new AbortController();
}

describe('answers in the place of the contract', () => {
  it.each([
    ['http-500', 500],
    ['http-503', 503],
    ['http-429', 429],
    ['status', 418],
    ['unauthorized', 401],
    ['not-found', 404],
  ])('%s answers %i to both operations and processes nothing', async (name, status) => {
    const job = faulty({ name });
    for (const reply of [await read(sandbox, job.jobId), await send(sandbox, job.jobId, 'x')]) {
      expect(reply.status).toBe(status);
      expect(reply.error()).not.toBe('');
    }
    expect(sandbox.job(job).messages).toBe(0);
  });

  it('status takes the code and the Retry-After header', async () => {
    const job = faulty({ name: 'status', parameters: { code: 529, retryAfter: '7' } });
    const reply = await read(sandbox, job.jobId);
    expect([reply.status, reply.headers['retry-after']]).toEqual([529, '7']);
  });

  it.each([
    ['none', undefined],
    ['12', '12'],
    ['negative', '-5'],
    ['absurd', '999999999'],
    ['garbage', 'soon'],
  ])('a 429 with retryAfter=%s sends %s', async (retryAfter, header) => {
    const job = faulty({ name: 'http-429', parameters: { retryAfter } });
    expect((await send(sandbox, job.jobId, 'x')).headers['retry-after']).toBe(header);
  });

  it.each([
    ['date', 30_000],
    ['past', -30_000],
  ])('a 429 with retryAfter=%s sends an HTTP date %i ms away', async (retryAfter, distance) => {
    const job = faulty({ name: 'http-429', parameters: { retryAfter } });
    const header = String((await send(sandbox, job.jobId, 'x')).headers['retry-after']);
    expect(header).toMatch(/^[A-Z][a-z]{2}, .* GMT$/);
    expect(Math.abs(Date.parse(header) - Date.now() - distance)).toBeLessThan(5_000);
  });

  it('read-only refuses messages and lets reads through', async () => {
    const job = faulty({ name: 'read-only' });
    expect((await read(sandbox, job.jobId)).status).toBe(200);
    expect((await send(sandbox, job.jobId, 'x')).status).toBe(403);
  });

  it('html answers 200 with a page that is no job', async () => {
    const job = faulty({ name: 'html' });
    const reply = await send(sandbox, job.jobId, 'x');
    expect([reply.status, reply.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(sandbox.job(job).messages).toBe(0);
  });

  it('not-json says JSON and sends something else, after it has processed the message', async () => {
    const job = faulty({ name: 'not-json' });
    const reply = await send(sandbox, job.jobId, 'x');
    expect(reply.headers['content-type']).toBe('application/json');
    expect(() => reply.job()).toThrow(SyntaxError);
    expect(sandbox.job(job).messages).toBe(1);
  });

  it.each(['html', 'http-503', 'redirect'])('%s can be told to process the message before', async (name) => {
    const job = faulty({ name, parameters: { processed: 'yes' } });
    await send(sandbox, job.jobId, 'x');
    expect(sandbox.job(job).messages).toBe(1);
  });

  it('huge sends as many bytes as it is told', async () => {
    const job = faulty({ name: 'huge', parameters: { bytes: 3_000_000 } });
    const reply = await read(sandbox, job.jobId);
    expect(reply.text.length).toBeGreaterThan(3_000_000);
    expect(reply.job().status).toBe('active');
  });
});

describe('redirects', () => {
  it.each([
    ['same', /^\/v2\/agent\/docs\/job\//],
    ['other', /^http:\/\/localhost:\d+\/v2\/agent\/docs\/job\//],
  ])('to the %s origin names an address that works', async (to, location) => {
    const job = faulty({ name: 'redirect', parameters: { to, code: '308' } });
    const reply = await read(sandbox, job.jobId);
    expect(reply.status).toBe(308);
    expect(reply.headers.location).toMatch(location);
    expect(sandbox.job(job).messages).toBe(0);
  });

  it('catch a client that follows them: the journal has a second request, and it was processed', async () => {
    const job = faulty({ name: 'redirect' });
    const response = await fetch(`${sandbox.baseUrl}${jobPath(job.jobId)}/message`, {
      method: 'POST',
      headers: { authorization: `Bearer ${sandbox.apiKey}`, 'content-type': 'application/json' },
      body: '{"prompt":"x"}',
    });
    expect(response.status).toBe(200);
    expect(sandbox.journal.entries(job).map(({ status, processed }) => [status, processed])).toEqual([
      [307, false],
      [200, true],
    ]);
  });
});

describe('connections that end', () => {
  it.each([
    ['close-before-read', 'UND_ERR_SOCKET', 'closed', false],
    ['close-after-read', 'UND_ERR_SOCKET', 'closed', false],
    ['reset', 'ECONNRESET', 'reset', false],
    ['processed-then-close', 'UND_ERR_SOCKET', 'closed', true],
    ['processed-then-reset', 'ECONNRESET', 'reset', true],
    ['truncated', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'closed', true],
  ] as const)('%s: the caller sees %s', async (name, code, ending, processed) => {
    const job = faulty({ name });
    expect(await failureCode(send(sandbox, job.jobId, 'x'))).toBe(code);
    const [entry] = await sandbox.journal.waitFor({ ...job, ending });
    expect(entry).toMatchObject({ processed, faults: [name] });
    expect(sandbox.job(job).messages).toBe(processed ? 1 : 0);
  });

  it('close-before-read leaves the prompt unread, close-after-read does not', async () => {
    const [before, after] = [faulty({ name: 'close-before-read' }), faulty({ name: 'close-after-read' })];
    await failureCode(send(sandbox, before.jobId, 'x'));
    await failureCode(send(sandbox, after.jobId, 'x'));
    expect(sandbox.journal.entries(before)[0]?.prompt).toBeNull();
    expect(sandbox.journal.entries(after)[0]?.prompt?.text).toBe('x');
  });

  it('truncated is a 200 whose body ends too early', async () => {
    const job = faulty({ name: 'truncated' });
    await failureCode(read(sandbox, job.jobId));
    expect((await sandbox.journal.waitFor({ ...job, ending: 'closed' }))[0]?.status).toBe(200);
  });
});

describe('answers that come late or never', () => {
  it.each([
    ['hang', false],
    ['processed-then-timeout', true],
  ])('%s never answers', async (name, processed) => {
    const job = faulty({ name });
    const caller = giveUp();
    const code = failureCode(send(sandbox, job.jobId, 'x', { signal: caller.signal }));
    await sandbox.journal.waitFor({ ...job, ending: 'pending', fault: name });
    caller.abort();
    expect(await code).toBe('AbortError');
    const [entry] = await sandbox.journal.waitFor({ ...job, ending: 'caller-gone' });
    expect(entry).toMatchObject({ status: null, processed });
  });

  it('drip begins a 200 and goes on until the caller gives up', async () => {
    const job = faulty({ name: 'drip', parameters: { every: '5ms' } });
    const caller = giveUp();
    const response = await fetch(`${sandbox.baseUrl}${jobPath(job.jobId)}`, {
      headers: { authorization: `Bearer ${sandbox.apiKey}` },
      signal: caller.signal,
    });
    let bytes = 0;
    const reading = (async () => {
      for await (const piece of response.body as AsyncIterable<Uint8Array>) {
        bytes += piece.length;
        if (bytes > 5) caller.abort();
      }
    })();
    await expect(reading).rejects.toThrow('abort');
    expect(response.status).toBe(200);
    await sandbox.journal.waitFor({ ...job, ending: 'caller-gone' });
  });

  it('slow waits, and processes even if its caller has gone meanwhile', async () => {
    const job = faulty({ name: 'slow', parameters: { delay: '150ms' } });
    const caller = giveUp();
    const code = failureCode(send(sandbox, job.jobId, 'x', { signal: caller.signal }));
    await sandbox.journal.waitFor({ ...job, fault: 'slow' });
    caller.abort();
    await code;
    const [entry] = await sandbox.journal.waitFor({ ...job, processed: true });
    expect(entry?.turn).toBe(1);
  });

  it('slow answers after the time it was told', async () => {
    const job = faulty({ name: 'slow', parameters: { delay: '120ms' } });
    const startedAt = performance.now();
    expect((await read(sandbox, job.jobId)).status).toBe(200);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(119);
  });

  it.each([
    ['before', 1, 200, 1],
    ['after', 0, 200, 1],
    ['never', 0, 'UND_ERR_SOCKET', 0],
  ])(
    'hold with processed=%s: %i processed while held, then %s',
    async (processed, during, result, afterwards) => {
      const job = faulty({ name: 'hold', parameters: { processed } });
      const code = failureCode(send(sandbox, job.jobId, 'x'));
      await sandbox.journal.waitFor({ ...job, fault: 'hold' });
      expect(sandbox.job(job).messages).toBe(during);
      expect(sandbox.release(job)).toBe(1);
      expect(await code).toBe(result === 200 ? 'answered 200' : result);
      expect(sandbox.job(job).messages).toBe(afterwards);
    },
  );

  it('a held message whose caller has gone is processed on release: it arrived late', async () => {
    const job = faulty({ name: 'hold', parameters: { processed: 'after' } });
    const caller = giveUp();
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

describe('keys', () => {
  it('expire-key lets the key expire for every job, and a new key works', async () => {
    const own = await startSandbox();
    try {
      own.setFault({ name: 'expire-key', skip: 1, jobId: 'job-1' });
      expect((await read(own, 'job-1')).status).toBe(200);
      expect((await read(own, 'job-1')).status).toBe(401);
      expect((await read(own, 'job-2')).status).toBe(401);
      own.clearFaults();
      expect((await read(own, 'job-1')).status).toBe(401);
      expect((await read(own, 'job-1', { key: own.createKey() })).status).toBe(200);
    } finally {
      await own.close();
    }
  });
});

describe('what is processed', () => {
  it('processed-then faults act only on messages that the contract takes', async () => {
    const job = faulty({ name: 'processed-then-500' });
    expect((await send(sandbox, job.jobId, '')).status).toBe(400);
    expect((await send(sandbox, job.jobId, 'x', { key: 'sandbox_wrong' })).status).toBe(401);
    expect((await send(sandbox, job.jobId, 'x')).status).toBe(500);
    expect(sandbox.job(job).messages).toBe(1);
  });
});
