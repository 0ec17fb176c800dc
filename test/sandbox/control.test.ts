import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Sandbox, SandboxControl, startSandbox } from '../../sandbox';
import { call, failureCode, read, send } from './requests';

let sandbox: Sandbox;
let control: SandboxControl;

beforeAll(async () => {
  sandbox = await startSandbox({ basePath: '/api', turnMs: 60_000, messagesPerHour: null });
  control = new SandboxControl(sandbox.baseUrl);
});

afterAll(async () => {
  await sandbox.close();
});

describe('a sandbox that is controlled from another process', () => {
  it('adds a job, reports it and changes it by hand', async () => {
    const key = { projectId: 'p/1', jobId: 'ü' };
    const added = await control.addJob({
      projectId: 'p/1',
      id: 'ü',
      status: 'active',
      turn: { durationMs: null },
    });
    expect(added).toMatchObject({ ...key, job: { status: 'active' }, messages: 0 });
    const changed = await control.changeJob(key, { status: 'completed', prLink: 'https://l/1' });
    expect(changed.job).toMatchObject({ status: 'completed', prLink: 'https://l/1' });
    expect(await control.job(key)).toEqual(changed);
    expect((await control.jobs()).map(({ jobId }) => jobId)).toContain('ü');
  });

  it('ends a turn at the read that it is asked to, whatever else looks at the job', async () => {
    const { projectId, jobId } = await control.addJob({ turn: { reads: 2 } });
    for (const turn of ['first', 'second']) {
      expect((await read(sandbox, jobId)).job().status).toBe('completed');
      expect((await send(sandbox, jobId, turn)).job().status).toBe('active');
      expect((await read(sandbox, jobId)).job().status).toBe('active');
      expect((await control.job({ projectId, jobId })).job.status).toBe('active');
      expect((await read(sandbox, jobId)).job().status).toBe('completed');
    }
  });

  it('makes up an id where none is given', async () => {
    const [first, second] = [await control.addJob(), await control.addJob()];
    expect(first.jobId).not.toBe(second.jobId);
  });

  it('switches faults on and off, for one job and for all', async () => {
    const { projectId, jobId } = await control.addJob();
    const job = { projectId, jobId };
    await control.setFault({ name: 'http-503', times: 2, parameters: { retryAfter: '4' }, ...job });
    expect((await read(sandbox, jobId)).headers['retry-after']).toBe('4');
    expect(await control.faults(job)).toEqual([{ name: 'http-503', ...job, struck: 1, left: 1 }]);
    await control.clearFaults(job, 'http-503');
    expect((await read(sandbox, jobId)).status).toBe(200);
    await control.setFault({ name: 'not-found' });
    expect((await read(sandbox, jobId)).status).toBe(404);
    await control.clearFaults();
    expect((await read(sandbox, jobId)).status).toBe(200);
  });

  it('hands out the journal by filter', async () => {
    const { jobId } = await control.addJob();
    await read(sandbox, jobId);
    await send(sandbox, jobId, 'x');
    const processed = await control.journal({ projectId: 'docs', jobId, method: 'POST', processed: true });
    expect(processed).toEqual(sandbox.journal.entries({ jobId, processed: true }));
    expect(await control.journal({ jobId, processed: false })).toHaveLength(1);
  });

  it('waits for a held message and releases it', async () => {
    const { projectId, jobId } = await control.addJob();
    await control.setFault({ name: 'hold', projectId, jobId });
    const waiting = control.waitFor({ jobId, fault: 'hold' });
    const reply = failureCode(send(sandbox, jobId, 'x'));
    expect((await waiting)[0]?.ending).toBe('pending');
    expect(await control.release()).toBe(1);
    expect(await reply).toBe('answered 200');
  });

  it('says what it waited for when that does not come', async () => {
    await expect(control.waitFor({ jobId: 'never' }, { timeoutMs: 10 })).rejects.toThrow(
      'waited 10 ms for 1 request(s) that match {"jobId":"never"}; the journal has 0',
    );
  });

  it('makes keys and lets them expire', async () => {
    const key = await control.createKey('read-only');
    expect((await read(sandbox, 'job-1', { key })).status).toBe(200);
    expect((await send(sandbox, 'job-1', 'x', { key })).status).toBe(403);
    await control.expireKeys();
    expect((await read(sandbox, 'job-1', { key })).status).toBe(401);
    expect((await read(sandbox, 'job-1', { key: await control.createKey() })).status).toBe(200);
  });
});

describe('bad control requests get one clear message', () => {
  it.each([
    ['an unknown fault', () => control.setFault({ name: 'htp-503' }), /did you mean http-503\?/],
    [
      'a bad parameter',
      () => control.setFault({ name: 'slow', parameters: { delay: 5 } }),
      /delay 5 needs a unit/,
    ],
    ['an unknown job', () => control.job({ projectId: 'docs', jobId: 'nobody' }), /404 .*has no job nobody/],
    ['a job that is there', () => control.addJob({ id: 'job-1' }), /409 .*already has a job job-1/],
  ])('%s', async (_, action, words) => {
    await expect(action()).rejects.toThrow(words);
  });

  async function raw(method: string, path: string, body?: string, headers = {}): Promise<[number, string]> {
    const response = await fetch(sandbox.controlUrl + path, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    return [response.status, ((await response.json()) as { error: string }).error];
  }

  it.each([
    ['POST', '/sandbox/jobs', '{"stauts":"active"}', 400, /Unrecognized key: "stauts"/],
    ['POST', '/sandbox/jobs', '{"status":"done"}', 400, /^status: /],
    ['POST', '/sandbox/jobs', '{', 400, /not JSON/],
    ['POST', '/sandbox/jobs', 'x'.repeat(100_000), 400, /larger than 65536 bytes/],
    ['GET', '/sandbox/journal?processed=maybe', undefined, 400, /^processed: /],
    ['GET', '/sandbox/journal?job=1', undefined, 400, /Unrecognized key: "job"/],
    ['GET', '/sandbox/nowhere', undefined, 404, /GET \/sandbox lists them/],
    ['PUT', '/sandbox/jobs', '{}', 405, /takes GET, POST/],
  ])('%s %s with %j is answered %i%s', async (method, path, body, status, words) => {
    expect(await raw(method, path, body)).toEqual([status, expect.stringMatching(words)]);
  });

  it('a page in a browser is refused', async () => {
    const [status] = await raw('POST', '/sandbox/keys', '{}', { origin: 'https://elsewhere.example' });
    expect(status).toBe(403);
  });

  it('GET /sandbox lists every endpoint', async () => {
    const reply = await fetch(`${sandbox.controlUrl}/sandbox`);
    expect(Object.keys((await reply.json()) as object)).toContain(
      'POST /sandbox/jobs/:projectId/:jobId/faults',
    );
    expect((await call(sandbox, '/sandbox')).status).toBe(404);
  });
});
