import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { ADDRESS, expectNoKey, JOB, KEY, PATIENT_MS, SHORT_MS, WireTest } from './agent-api-under-test';
import { answer, dripForever, httpHead, type OnRequest } from './misbehaving-server';

describe('a GET of the job', () => {
  const wire = new WireTest();

  async function read(onRequest: OnRequest, timeoutMs = PATIENT_MS) {
    wire.server.onRequest = onRequest;
    const result = await wire.client({ timeoutMs }).getJob(ADDRESS);
    expectNoKey(result);
    expect(wire.server.requests).toHaveLength(1);
    return result;
  }

  it('brings the job', async () => {
    expect(await read(answer(200, JOB))).toEqual({ kind: 'job', job: JOB });
  });

  it('brings a job of which only id and status are there', async () => {
    expect(await read(answer(200, { id: 'job-1', status: 'queued', prLink: '', extra: 1 }))).toEqual({
      kind: 'job',
      job: {
        id: 'job-1',
        status: 'queued',
        source: { repository: null, ref: null },
        model: null,
        prLink: null,
        createdAt: null,
        archivedAt: null,
      },
    });
  });

  it.each([
    ['an HTML page', '<html>', 'http 200 with an HTML page instead of a job: check AGENT_API_BASE_URL'],
    ['JSON that is no job', '{"jobs":[]}', 'http 200 with a body that is no job'],
    ['no JSON', '{"id": "job-1", ', 'http 200 with a body that is no job'],
  ])('that is answered with %s is a trouble', async (_what, body, message) => {
    expect(await read(answer(200, body))).toMatchObject({
      kind: 'trouble',
      label: 'not a job',
      message,
      httpStatus: 200,
    });
  });

  it('that is answered with another job is a trouble', async () => {
    expect(await read(answer(200, { ...JOB, id: 'JOB-1' }))).toMatchObject({
      kind: 'trouble',
      label: 'another job',
    });
  });

  it.each([
    [401, 'http 401: the key is expired or wrong; no'],
    [403, 'http 403: the key may not read this project, or this address is not allowed; no'],
    [404, 'http 404: no'],
    [429, 'http 429: no'],
    [500, 'http 500: no'],
  ])('that is answered with %i is a trouble', async (status, message) => {
    expect(await read(answer(status, { error: 'no' }))).toEqual({
      kind: 'trouble',
      label: `http ${status}`,
      message,
      httpStatus: status,
      serviceMessage: 'no',
    });
  });

  it('carries the wait that the service asked for', async () => {
    expect(
      await read(answer(503, 'Service is restarting', { 'retry-after': '2', 'content-type': 'text/plain' })),
    ).toEqual({
      kind: 'trouble',
      label: 'http 503',
      message: 'http 503: Service is restarting',
      httpStatus: 503,
      serviceMessage: 'Service is restarting',
      retryAfterMs: 2_000,
    });
  });

  it.each([301, 302, 307, 308])('follows no redirect: %i', async (status) => {
    const other = await wire.anotherServer();
    expect(await read(answer(status, '', { location: `${other.url}/?key=${KEY}` }))).toEqual({
      kind: 'trouble',
      label: `http ${status}`,
      message: `http ${status}: a redirect to ${other.url}/?key=[key], which is not followed; check AGENT_API_BASE_URL`,
      httpStatus: status,
    });
    expect(other.connections).toBe(0);
  });

  it('takes the first of a header that comes twice', async () => {
    const location = '/elsewhere\r\nlocation: /nowhere';
    expect(await read(answer(301, '', { location }))).toMatchObject({
      message: 'http 301: a redirect to /elsewhere, which is not followed; check AGENT_API_BASE_URL',
    });
  });

  it('that is never answered ends by the time limit', async () => {
    expect(await read(() => undefined, SHORT_MS)).toMatchObject({ kind: 'trouble', label: 'timeout' });
    await wire.server.allClosed();
  });

  it('whose body drips for ever ends by the time limit', async () => {
    const result = await read((socket) => {
      socket.write(httpHead(200, { 'content-length': 1_000_000 }));
      dripForever(socket, ' ', 20);
    }, SHORT_MS);
    expect(result).toMatchObject({ kind: 'trouble', label: 'timeout', httpStatus: 200 });
    await wire.server.allClosed();
  });

  it('that breaks off is a trouble, and is not tried again', async () => {
    expect(await read((socket) => socket.resetAndDestroy())).toMatchObject({
      kind: 'trouble',
      label: expect.stringMatching(/^(ECONNRESET|UND_ERR_SOCKET)$/),
    });
  });

  it('that meets the end of a kept connection is a trouble, and the next one is fine', async () => {
    const client = wire.client();
    wire.server.onRequest = (socket, request) => {
      if (wire.server.requests.length === 2) socket.resetAndDestroy();
      else answer(200, JOB)(socket, request);
    };
    const kinds = [];
    for (let n = 0; n < 3; n += 1) {
      kinds.push((await client.getJob(ADDRESS)).kind);
      // undici gives a kept connection out again one turn of the event loop after its answer.
      await setImmediate();
    }
    expect(kinds).toEqual(['job', 'trouble', 'job']);
    expect(wire.server.requests.map(({ connection }) => connection)).toEqual([1, 1, 2]);
  });
});
