import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Sandbox, startSandbox } from '../../sandbox';
import { call, failureCode, read, send } from './requests';

let sandbox: Sandbox;
const lines: string[] = [];

beforeAll(async () => {
  sandbox = await startSandbox({ turnMs: 60_000, log: (line) => lines.push(line) });
});

afterAll(async () => {
  await sandbox.close();
});

describe('the journal as an oracle', () => {
  it('tells for every message whether it was processed, with a number that increases per job', async () => {
    const { projectId, jobId } = sandbox.addJob();
    const job = { projectId, jobId };
    await send(sandbox, jobId, 'one');
    await send(sandbox, jobId, '');
    sandbox.setFault({ name: 'close-after-read', times: 1, ...job });
    await failureCode(send(sandbox, jobId, 'lost'));
    sandbox.setFault({ name: 'processed-then-reset', times: 1, ...job });
    await failureCode(send(sandbox, jobId, 'two'));
    await read(sandbox, jobId);
    await send(sandbox, jobId, 'three 🙂 \u0000');
    const messages = await sandbox.journal.waitFor({ ...job, operation: 'message' }, { atLeast: 5 });
    expect(messages.map(({ prompt, processed, turn }) => [prompt?.text, processed, turn])).toEqual([
      ['one', true, 1],
      [undefined, false, null],
      ['lost', false, null],
      ['two', true, 2],
      ['three 🙂 \u0000', true, 3],
    ]);
    expect(sandbox.job(job).turns.map(({ number, prompt }) => [number, prompt])).toEqual([
      [1, 'one'],
      [2, 'two'],
      [3, 'three 🙂 \u0000'],
    ]);
  });

  it('counts a message to an active job as processed: that is the harm of a duplicate', async () => {
    const job = sandbox.addJob();
    await send(sandbox, job.jobId, 'same');
    await send(sandbox, job.jobId, 'same');
    const taken = sandbox.journal.entries({ jobId: job.jobId, processed: true });
    expect(taken.map(({ turn }) => turn)).toEqual([1, 2]);
    expect(sandbox.job(job).turns[0]?.state).toBe('interrupted');
  });

  it('says which kind of key a request carried, and never the key', async () => {
    await read(sandbox, 'job-1');
    await read(sandbox, 'job-1', { key: sandbox.createKey('read-only') });
    await read(sandbox, 'job-1', { key: 'sandbox_wrong' });
    await read(sandbox, 'job-1', { key: null });
    const entries = sandbox.journal.entries({ jobId: 'job-1' });
    expect(entries.map(({ key }) => key)).toEqual(['write', 'read-only', 'unknown', 'none']);
    expect(JSON.stringify(sandbox.journal.entries())).not.toContain(sandbox.apiKey);
  });

  it('has requests to unknown paths and jobs, and none of pull requests and control', async () => {
    const before = sandbox.journal.entries().length;
    await call(sandbox, '/nowhere?x=1');
    await read(sandbox, 'nobody');
    await call(sandbox, '/pull/1');
    await call(sandbox, '/sandbox');
    expect(sandbox.journal.entries().slice(before)).toMatchObject([
      { path: '/nowhere?x=1', operation: null, status: 404 },
      { jobId: 'nobody', operation: 'get', status: 404 },
    ]);
  });

  it('numbers requests in the order of arrival and waits for those that are to come', async () => {
    const job = sandbox.addJob();
    const waiting = sandbox.journal.waitFor({ jobId: job.jobId, ending: 'answered' }, { atLeast: 2 });
    await read(sandbox, job.jobId);
    await send(sandbox, job.jobId, 'x');
    const [first, second] = await waiting;
    expect([first?.method, second?.method]).toEqual(['GET', 'POST']);
    expect(second?.number).toBe((first?.number ?? NaN) + 1);
  });

  it('hands out copies, which do not change', async () => {
    const job = sandbox.addJob();
    sandbox.setFault({ name: 'hold', ...keyOf(job) });
    const reply = read(sandbox, job.jobId);
    const [held] = await sandbox.journal.waitFor({ ...keyOf(job), fault: 'hold' });
    sandbox.release();
    await reply;
    expect(held).toMatchObject({ ending: 'pending', endedAt: null });
    const [ended] = await sandbox.journal.waitFor({ ...keyOf(job), ending: 'answered' });
    expect(Date.parse(ended?.endedAt ?? '')).toBeGreaterThanOrEqual(Date.parse(ended?.time ?? ''));
  });

  it('says what it waited for when that does not come', async () => {
    await expect(sandbox.journal.waitFor({ jobId: 'never' }, { timeoutMs: 10 })).rejects.toThrow(
      'waited 10 ms for 1 request(s) that match {"jobId":"never"}; the journal has 0',
    );
  });
});

describe('the log', () => {
  it('has one line per request and never a key', async () => {
    const job = sandbox.addJob({ id: 'log' });
    sandbox.setFault({ name: 'processed-then-close', ...keyOf(job), times: 1 });
    lines.length = 0;
    await failureCode(send(sandbox, 'log', 'x'));
    await read(sandbox, 'log', { key: 'sandbox_wrong' });
    await control('GET', '/jobs');
    expect(lines).toEqual([
      expect.stringMatching(
        /^POST \/v2\/agent\/docs\/job\/log\/message closed \d+ ms · processed as turn 1 · fault processed-then-close$/,
      ),
      expect.stringMatching(/^GET \/v2\/agent\/docs\/job\/log 401 \d+ ms$/),
      expect.stringMatching(/^GET \/sandbox\/jobs 200 \d+ ms$/),
    ]);
  });
});

describe('closing', () => {
  it('ends every connection at once, also those that are held, slow or never answered', async () => {
    const own = await startSandbox();
    own.setFault({ name: 'hold', jobId: 'job-1' });
    own.setFault({ name: 'slow', jobId: 'job-2', parameters: { delay: '1h' } });
    own.setFault({ name: 'hang', jobId: 'job-3' });
    const calls = ['job-1', 'job-2', 'job-3'].map((id) => failureCode(send(own, id, 'x')));
    for (const fault of ['hold', 'slow', 'hang']) await own.journal.waitFor({ fault, ending: 'pending' });
    await own.close();
    for (const code of await Promise.all(calls)) expect(code).toMatch(/^(UND_ERR_SOCKET|ECONNRESET)$/);
    expect(await own.journal.waitFor({ ending: 'sandbox-closed' }, { atLeast: 3 })).toHaveLength(3);
    expect(await failureCode(read(own, 'job-1'))).toBe('ECONNREFUSED');
  });
});

describe('control over HTTP', () => {
  it('shows the journal and the jobs', async () => {
    const { jobId } = sandbox.addJob();
    await send(sandbox, jobId, 'x');
    const [, { entries }] = await control('GET', '/journal');
    expect(entries).toEqual(JSON.parse(JSON.stringify(sandbox.journal.entries())));
    const [, { jobs }] = await control('GET', '/jobs');
    expect(jobs).toContainEqual(expect.objectContaining({ jobId, messages: 1 }));
  });

  it('switches faults on, as the command line does, and off', async () => {
    const job = keyOf(sandbox.addJob());
    await control('POST', '/faults', JSON.stringify({ name: 'not-found', ...job }));
    expect((await read(sandbox, job.jobId)).status).toBe(404);
    await control('DELETE', '/faults');
    expect((await read(sandbox, job.jobId)).status).toBe(200);
  });

  it('releases what is held', async () => {
    const job = keyOf(sandbox.addJob());
    sandbox.setFault({ name: 'hold', ...job, times: 1 });
    const reply = read(sandbox, job.jobId);
    await sandbox.journal.waitFor({ ...job, fault: 'hold' });
    expect(await control('POST', '/release')).toEqual([200, { released: 1 }]);
    expect((await reply).status).toBe(200);
  });

  it('lets keys expire and makes new ones', async () => {
    const own = await startSandbox();
    try {
      await fetch(`${own.baseUrl}/sandbox/keys`, { method: 'DELETE' });
      expect((await read(own, 'job-1')).error()).toBe('the API key is expired');
      const made = await fetch(`${own.baseUrl}/sandbox/keys`, {
        method: 'POST',
        body: '{"access":"read-only"}',
      });
      const { key } = (await made.json()) as { key: string };
      expect((await read(own, 'job-1', { key })).status).toBe(200);
      expect((await send(own, 'job-1', 'x', { key })).status).toBe(403);
    } finally {
      await own.close();
    }
  });

  it.each([
    ['POST', '/faults', '{"name":"htp-503"}', 400, /^name: there is no fault "htp-503"/],
    ['POST', '/faults', '{"name":"slow","tims":1}', 400, /Unrecognized key: "tims"/],
    ['POST', '/keys', '{', 400, /not JSON/],
    ['GET', '/nowhere', undefined, 404, /GET \/sandbox lists them/],
    ['PUT', '/jobs', '{}', 404, /GET \/sandbox lists them/],
  ])('%s %s with %j is answered %i%s', async (method, path, body, status, words) => {
    expect(await control(method, path, body)).toEqual([
      status,
      { error: expect.stringMatching(words) as unknown },
    ]);
  });

  it('refuses a web page', async () => {
    const headers = { origin: 'https://elsewhere.example' };
    expect((await fetch(`${sandbox.baseUrl}/sandbox/keys`, { method: 'POST', headers })).status).toBe(403);
  });
});

function keyOf({ projectId, jobId }: { projectId: string; jobId: string }) {
  return { projectId, jobId };
}

async function control(
  method: string,
  path: string,
  body?: string,
): Promise<[number, Record<string, unknown>]> {
  const response = await fetch(`${sandbox.baseUrl}/sandbox${path}`, {
    method,
    ...(body === undefined ? {} : { body }),
  });
  return [response.status, (await response.json()) as Record<string, unknown>];
}
