import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { holdTimers } from '../harness/hold-timers';
import { ADDRESS, expectNoKey, JOB, KEY, outOfTime, WireTest } from './agent-api-under-test';
import { answer, type OnRequest } from './misbehaving-server';

describe('a GET of the job', () => {
  const wire = new WireTest();

  async function read(onRequest: OnRequest) {
    wire.server.onRequest = onRequest;
    const result = await wire.client().getJob(ADDRESS);
    expectNoKey(result);
    expect(wire.server.requests).toHaveLength(1);
    return result;
  }

  it.each([
    [401, 'http 401: the key is expired or wrong; no'],
    [403, 'http 403: the key may not read this project, or this address is not allowed; no'],
    [404, 'http 404: no'],
    [500, 'http 500: no'],
  ])('that is answered with %i is a trouble, with the wait that is asked for', async (status, message) => {
    expect(await read(answer(status, { error: 'no' }, { 'retry-after': '2' }))).toEqual({
      kind: 'trouble',
      label: `http ${status}`,
      message,
      httpStatus: status,
      serviceMessage: 'no',
      retryAfterMs: 2_000,
    });
  });

  // Proves A7.
  it.each([
    ['nginx’s page', '<html><center><h1>Not Found</h1></center></html>', ''],
    ['plain text', 'default backend - 404', '; default backend - 404'],
    ['no body', '', ''],
    ['a list', '[{"error":"no"}]', ''],
    ['a text as JSON', '"no such route"', '; no such route'],
    ['a body that was cut off', '{"error":"n', ''],
  ])('that is answered by a gateway, with %s, says nothing of job or key', async (_what, body, said) => {
    for (const status of [400, 401, 403, 404]) {
      wire.server.onRequest = answer(status, body);
      // No httpStatus, by which the workflow would end.
      expect(await wire.client().getJob(ADDRESS)).toEqual({
        kind: 'trouble',
        label: 'not a job',
        message: `http ${status}, but the body is no JSON object: a gateway, and not the service; check AGENT_API_BASE_URL${said}`,
      });
    }
  });

  // Proves A4.
  it('that is refused until a date waits by the clock of the service', async () => {
    const headers = { date: 'Mon, 06 Jan 2020 10:00:00 GMT', 'retry-after': 'Mon, 06 Jan 2020 10:02:00 GMT' };
    expect(await read(answer(503, { error: 'no' }, headers))).toMatchObject({ retryAfterMs: 120_000 });
  });

  it('follows no redirect', async () => {
    const other = await wire.anotherServer();
    const location = `${other.url}/?key=${KEY}`;
    expect(await read(answer(302, '', { location }))).toMatchObject({ kind: 'trouble', label: 'http 302' });
    expect(other.connections).toBe(0);
  });

  it('that is never answered ends by the time limit', async () => {
    holdTimers();
    expect(await read(outOfTime)).toMatchObject({ kind: 'trouble', label: 'timeout' });
    await wire.server.allClosed();
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
