import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { request } from 'undici';
import { type Sandbox, startSandbox } from '../../sandbox';
import type { AgentJob } from '../../src/contract/job';

let sandbox: Sandbox;
let now = Date.parse('2026-01-01T00:00:00Z');

beforeAll(async () => {
  sandbox = await startSandbox({ turnMs: 60_000, messagesPerHour: null, now: () => now });
});

afterAll(() => sandbox.close());

/** Makes one request for a job of the project docs on a new connection. With a body, the request is a message; otherwise, a read. */
async function call(jobId: string, body?: string | Buffer, { baseUrl, apiKey } = sandbox) {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const path = `/v2/agent/docs/job/${encodeURIComponent(jobId)}`;
  const [method, url] = body === undefined ? ['GET', path] : ['POST', `${path}/message`];
  const response = await request(baseUrl + url, { method, reset: true, headers, body: body ?? null });
  const text = await response.body.text();
  const { statusCode: status, headers: responseHeaders } = response;
  return { status, headers: responseHeaders, body: JSON.parse(text) as AgentJob & { error: string } };
}

const send = (jobId: string, prompt: string) => call(jobId, JSON.stringify({ prompt }));

it('a read returns every field of the specification, and decodes the job ID exactly once', async () => {
  const { jobId: id } = sandbox.addJob({ id: 'ü 漢字 🙂?b#c%2F/d', pullRequest: true });
  const reply = await call(id);
  expect(reply.headers['content-type']).toMatch(/^application\/json/);
  const rest = { source: { repository: 'example/handbook', ref: 'main' }, model: 'sandbox-writer-1' };
  const prLink = expect.stringContaining('/pull/');
  const job = { id, status: 'completed', prLink, createdAt: new Date(now).toISOString(), archivedAt: null };
  expect(reply).toMatchObject({ status: 200, body: { ...job, ...rest } });
});

it('returns 400 with the reason for a message to an archived job and for an empty message', async () => {
  const error = 'the job is archived and accepts no more messages';
  expect(await send('job-5', 'Wake up.')).toMatchObject({ status: 400, body: { error } });
  expect(await send('job-1', '')).toMatchObject({ status: 400 });
});

it('returns 429 with Retry-After for messages over the hourly limit, but not for reads', async () => {
  const limited = await startSandbox({ messagesPerHour: 2, now: () => now });
  const sendMessage = () => call('job-1', '{"prompt":"x"}', limited);
  await sendMessage();
  now += 600_000;
  await sendMessage();
  expect(await sendMessage()).toMatchObject({ status: 429, headers: { 'retry-after': '3000' } });
  expect((await call('job-1', undefined, limited)).status).toBe(200);
  await limited.close();
});

it.each([
  ['stale', 3, ['failed', 'failed', 'failed', 'failed', 'completed with a link']],
  ['late-link', 2, ['active', 'active', 'completed', 'completed', 'completed with a link']],
])(
  'the fault %s lasts for %i reads, independent of the time between the reads',
  async (name, reads, expected) => {
    const { projectId, jobId } = sandbox.addJob({ turn: { reads: 2 }, status: 'failed' });
    sandbox.setFault({ name, parameters: { reads }, projectId, jobId });
    const jobs = [(await send(jobId, 'x')).body];
    while (jobs.length < 5) {
      now += 3_600_000;
      jobs.push((await call(jobId)).body);
    }
    const seen = jobs.map(({ status, prLink }) => status + (prLink === null ? '' : ' with a link'));
    expect(seen).toEqual(expected);
  },
);

it('the fault compressed returns the job in the encoding of its parameter, and processes a message', async () => {
  const { projectId, jobId } = sandbox.addJob();
  const path = `/v2/agent/${projectId}/job/${jobId}`;
  const headers = { authorization: `Bearer ${sandbox.apiKey}`, 'accept-encoding': 'identity' };
  sandbox.setFault({ name: 'compressed', parameters: { encoding: 'br' }, times: 1, projectId, jobId });
  // fetch decodes the body.
  const response = await fetch(sandbox.baseUrl + path, { headers });
  expect(response.headers.get('content-encoding')).toBe('br');
  expect(await response.json()).toMatchObject({ id: jobId });
  expect((await call(jobId)).body.id).toBe(jobId);
});

it.each([
  [{ turnMs: NaN }, /^turnMs: /],
  [{ messagesPerHour: Infinity }, /^messagesPerHour: /],
  [{ port: 70_000 }, /^port: /],
  [{ seed: 0.5 }, /^seed: /],
])('does not start with the options %j', async (options, message) => {
  await expect(startSandbox(options)).rejects.toThrow(message);
});

it('the journal has for every message whether it was processed, and the number of its turn, which increases per job', async () => {
  const { projectId, jobId } = sandbox.addJob();
  const job = { projectId, jobId };
  await send(jobId, 'one');
  await send(jobId, '');
  for (const [prompt, name] of Object.entries({
    lost: 'close-after-read',
    'two 🙂': 'processed-then-reset',
  })) {
    sandbox.setFault({ name, times: 1, ...job });
    await expect(send(jobId, prompt)).rejects.toThrow();
  }
  const messages = await sandbox.journal.waitFor({ ...job, operation: 'message' }, { atLeast: 4 });
  expect(messages.map(({ prompt, processed, turn }) => [prompt?.text, processed, turn])).toEqual([
    ['one', true, 1],
    [undefined, false, null],
    ['lost', false, null],
    ['two 🙂', true, 2],
  ]);
});

it('adds one job or a list of jobs atomically over HTTP, reports validation errors, and rejects browser requests', async () => {
  const post = async (path: string, body: unknown, headers = {}) => {
    const options = { method: 'POST', headers, body: JSON.stringify(body) };
    const response = await fetch(`${sandbox.baseUrl}/sandbox${path}`, options);
    return { status: response.status, ...((await response.json()) as object) };
  };
  const added = { projectId: 'docs', jobId: 'over-http', job: { status: 'completed' } };
  expect(await post('/jobs', { id: 'over-http' })).toMatchObject({ status: 200, jobs: [added] });
  for (const [path, body, error] of [
    ['/jobs', [{ id: 'another' }, { id: 'over-http' }], /^the project docs already has a job over-http$/],
    ['/jobs', [{}, { id: 'another', turn: { outcome: 'lost' } }], /^1\.turn\.outcome: /],
    ['/faults', { name: 'htp-503' }, /^name: "htp-503" is not a fault/],
  ] as const)
    expect(await post(path, body)).toEqual({ status: 400, error: expect.stringMatching(error) });
  expect((await call('another')).status).toBe(404);
  const error = expect.stringMatching(/GET \/sandbox lists the endpoints/);
  expect(await post('/nowhere', {})).toEqual({ status: 404, error });
  expect(await post('/keys', {}, { origin: 'https://elsewhere.example' })).toMatchObject({ status: 403 });
});
