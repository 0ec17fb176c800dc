import { setImmediate } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { ApiKeyError } from '../../src/agent-api/api-key';
import { ADDRESS, JOB, KEY, MESSAGE, WireTest } from './agent-api-under-test';
import { answer } from './misbehaving-server';

const wire = new WireTest();

describe('what is written on the wire', () => {
  beforeEach(() => {
    wire.server.onRequest = answer(200, JOB);
  });

  it('names the job in segments below the base URL, with the headers of the specification', async () => {
    const address = { projectId: 'docs/../x y', jobId: "jöb?#%'()*!~.-_" };
    for (const prefix of ['', '/', '/a/b//']) {
      const client = wire.client({ baseUrl: wire.server.url + prefix });
      await client.getJob(address);
      await client.sendMessage({ ...address, prompt: 'x' });
      const [get, post] = wire.server.requests.splice(0);
      const path = `${prefix.replace(/\/+$/, '')}/v2/agent/docs%2F..%2Fx%20y/job/j%C3%B6b%3F%23%25%27%28%29%2A%21~.-_`;
      const both = {
        authorization: `Bearer ${KEY}`,
        accept: 'application/json',
        'accept-encoding': 'identity',
        'cache-control': 'no-cache',
        'user-agent': 'agent-follow-up',
        host: wire.server.host,
      };
      expect(get).toMatchObject({ method: 'GET', path });
      expect(get?.headers).toEqual({ ...both, connection: 'keep-alive' });
      expect(get?.body).toHaveLength(0);
      expect(post).toMatchObject({ method: 'POST', path: `${path}/message` });
      const ofBody = { 'content-type': 'application/json', 'content-length': String(post?.body.length) };
      expect(post?.headers).toEqual({ ...both, ...ofBody, connection: 'close' });
    }
  });

  it('holds the prompt unaltered, up to 256 KiB', async () => {
    const letters = 'one\r\n\ttwo\n\n \u2028 Grüße 你好 \u0000 "quoted" \\ </script>';
    const prompt = letters + '🙂'.repeat(65_516);
    await wire.client().sendMessage({ ...ADDRESS, prompt });
    const body = wire.server.requests[0]?.body ?? Buffer.alloc(0);
    const sent = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as unknown;
    expect(sent).toStrictEqual({ prompt });
  });

  // Proves A2.
  it('comes on a fresh connection for each POST, and on a kept one for GETs, whose end is a trouble', async () => {
    const client = wire.client();
    wire.server.onRequest = (socket, request) => {
      if (wire.server.requests.length === 5) socket.resetAndDestroy();
      else answer(200, JOB)(socket, request);
    };
    const kinds = [];
    for (let n = 0; n < 3; n += 1) {
      kinds.push((await client.getJob(ADDRESS)).kind);
      await client.sendMessage(MESSAGE);
    }
    // undici gives a kept connection out again one turn of the event loop after its answer.
    await setImmediate();
    kinds.push((await client.getJob(ADDRESS)).kind);
    expect(kinds).toEqual(['job', 'job', 'trouble', 'job']);
    const connectionsOf = (method: string) =>
      wire.server.requests.filter((request) => request.method === method).map(({ connection }) => connection);
    expect(connectionsOf('GET')).toEqual([1, 1, 1, 5]);
    expect(connectionsOf('POST')).toEqual([2, 3, 4]);
  });
});

it('a key is hidden after its rotation too', async () => {
  const keys = [KEY, 'another-key-altogether'];
  const client = wire.client({ apiKey: { current: () => Promise.resolve(keys.shift() ?? '') } });
  wire.server.onRequest = answer(401, { error: `${KEY} is not another-key-altogether` });
  await client.getJob(ADDRESS);
  expect(await client.sendMessage(MESSAGE)).toMatchObject({ serviceMessage: '[key] is not [key]' });
});

it('a key that can’t be had keeps the message from being sent', async () => {
  const current = () => Promise.reject(new ApiKeyError('the vault', 'is sealed'));
  const client = wire.client({ apiKey: { current } });
  const notSent = { verdict: 'not-sent', repeatable: true, answered: false, label: 'no key' };
  expect(await client.sendMessage(MESSAGE)).toEqual({ ...notSent, message: 'the vault is sealed' });
  expect(await client.getJob(ADDRESS)).toMatchObject({ kind: 'trouble', label: 'no key' });
  expect(wire.server.connections).toBe(0);
});
