import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { Agent, request } from 'undici';
import { type Sandbox, SandboxControl, startSandbox } from '../../sandbox';
import { call, failureCode, jobPath, read, send } from './requests';

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
    await send(sandbox, jobId, 'three');
    const messages = await sandbox.journal.waitFor({ ...job, operation: 'message' }, { atLeast: 5 });
    expect(messages.map(({ prompt, processed, turn }) => [prompt?.text, processed, turn])).toEqual([
      ['one', true, 1],
      [undefined, false, null],
      ['lost', false, null],
      ['two', true, 2],
      ['three', true, 3],
    ]);
    expect(sandbox.job(job).turns.map(({ number, prompt }) => [number, prompt])).toEqual([
      [1, 'one'],
      [2, 'two'],
      [3, 'three'],
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

  it('keeps the prompt with its length and its SHA-256, whatever characters it has', async () => {
    const job = sandbox.addJob();
    const text = 'Zeile 1\n„ü" 🙂 \u0000';
    await send(sandbox, job.jobId, text);
    const sha256 = createHash('sha256').update(text, 'utf8').digest('hex');
    expect(sandbox.journal.entries({ jobId: job.jobId })[0]?.prompt).toEqual({
      sha256,
      length: text.length,
      text,
    });
  });

  it('keeps headers without the key, and says which kind of key it was', async () => {
    await read(sandbox, 'job-1', { headers: { 'cache-control': 'no-cache' } });
    await read(sandbox, 'job-1', { key: sandbox.readOnlyApiKey });
    await read(sandbox, 'job-1', { key: 'sandbox_wrong' });
    await read(sandbox, 'job-1', { key: null });
    const entries = sandbox.journal.entries({ jobId: 'job-1' });
    expect(entries.map(({ key }) => key)).toEqual(['write', 'read-only', 'unknown', 'none']);
    expect(entries[0]?.headers).toMatchObject({ authorization: '[hidden]', 'cache-control': 'no-cache' });
    expect(JSON.stringify(sandbox.journal.entries())).not.toContain(sandbox.apiKey);
  });

  it('tells connections apart: a pooled one has the same number, a fresh one another', async () => {
    const pool = new Agent({ connections: 1 });
    const url = `${sandbox.baseUrl}${jobPath('job-2')}`;
    const headers = { authorization: `Bearer ${sandbox.apiKey}` };
    for (let i = 0; i < 2; i += 1) await (await request(url, { headers, dispatcher: pool })).body.dump();
    await pool.close();
    await read(sandbox, 'job-2');
    const [first, second, third] = sandbox.journal
      .entries({ jobId: 'job-2' })
      .map(({ connection }) => connection);
    expect(second).toBe(first);
    expect(third).not.toBe(first);
  });

  it('has requests to unknown paths and jobs, and none of pages and control', async () => {
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
    const entries = await waiting;
    expect(entries.map(({ method }) => method)).toEqual(['GET', 'POST']);
    expect(entries.map(({ number }) => number).toSorted((a, b) => a - b)).toEqual(
      entries.map(({ number }) => number),
    );
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
    sandbox.setFault({ name: 'processed-then-close', projectId: 'docs', jobId: job.jobId, times: 1 });
    lines.length = 0;
    await failureCode(send(sandbox, 'log', 'x'));
    await read(sandbox, 'log', { key: 'sandbox_wrong' });
    await new SandboxControl(sandbox.baseUrl).jobs();
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
    own.setFault({ name: 'drip', jobId: 'job-nochange' });
    const calls = ['job-1', 'job-2', 'job-3', 'job-nochange'].map((id) => failureCode(send(own, id, 'x')));
    await own.journal.waitFor({ ending: 'pending', operation: 'message' }, { atLeast: 4 });
    for (const fault of ['hold', 'slow', 'hang', 'drip']) await own.journal.waitFor({ fault });
    await own.close();
    for (const code of await Promise.all(calls)) expect(code).toMatch(/^(UND_ERR_SOCKET|ECONNRESET)$/);
    expect(await own.journal.waitFor({ ending: 'sandbox-closed' }, { atLeast: 4 })).toHaveLength(4);
    expect(await failureCode(read(own, 'job-1'))).toBe('ECONNREFUSED');
  });
});
