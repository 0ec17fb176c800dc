import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { ApiKeyError, keyFromFile } from '../../src/agent-api/api-key';
import { temporaryFolder } from '../harness/temporary-folder';
import { ADDRESS, JOB, KEY, MESSAGE, WireTest } from './agent-api-under-test';
import { answer } from './misbehaving-server';

const wire = new WireTest();

describe('what is written on the wire', () => {
  beforeEach(() => {
    wire.server.onRequest = answer(200, JOB);
  });

  it.each(['', '/', '/a/b//'])('names the job in segments below the base URL: %j', async (prefix) => {
    const client = wire.client({ baseUrl: wire.server.url + prefix });
    const address = { projectId: 'docs/../x y', jobId: "jöb?#%'()*!~.-_" };
    await client.getJob(address);
    await client.sendMessage({ ...address, prompt: 'x' });
    const path = `${prefix.replace(/\/+$/, '')}/v2/agent/docs%2F..%2Fx%20y/job/j%C3%B6b%3F%23%25%27%28%29%2A%21~.-_`;
    expect(wire.server.requests.map((request) => `${request.method} ${request.path}`)).toEqual([
      `GET ${path}`,
      `POST ${path}/message`,
    ]);
  });

  it('has the headers of the specification, and asks caches to keep out', async () => {
    const client = wire.client();
    await client.getJob(ADDRESS);
    await client.sendMessage(MESSAGE);
    const [get, post] = wire.server.requests;
    const both = {
      authorization: `Bearer ${KEY}`,
      accept: 'application/json',
      'accept-encoding': 'identity',
      'cache-control': 'no-cache',
      'user-agent': 'agent-follow-up',
      host: `127.0.0.1:${wire.server.port}`,
    };
    expect(get?.headers).toEqual({ ...both, connection: 'keep-alive' });
    expect(post?.headers).toEqual({
      ...both,
      connection: 'close',
      'content-type': 'application/json',
      'content-length': String(post?.body.length),
    });
    expect(get?.body).toHaveLength(0);
  });

  it.each([
    ['lines and tabs', 'one\r\n\ttwo\n\n three \u2028'],
    ['every kind of letter', 'Grüße 你好 🙂 \u0000 "quoted" \\ </script>'],
    ['256 KiB', '🙂'.repeat(65_536)],
  ])('holds the prompt unaltered: %s', async (_what, prompt) => {
    await wire.client().sendMessage({ ...ADDRESS, prompt });
    const body = wire.server.requests[0]?.body ?? Buffer.alloc(0);
    const sent = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as unknown;
    expect(sent).toStrictEqual({ prompt });
  });

  it('comes on a fresh connection for each POST, and on a kept one for GETs', async () => {
    const client = wire.client();
    for (let n = 0; n < 3; n += 1) {
      await client.getJob(ADDRESS);
      await client.sendMessage(MESSAGE);
    }
    const connectionsOf = (method: string) =>
      wire.server.requests.filter((request) => request.method === method).map(({ connection }) => connection);
    expect(connectionsOf('GET')).toEqual([1, 1, 1]);
    expect(connectionsOf('POST')).toEqual([2, 3, 4]);
    expect(wire.server.connections).toBe(4);
  });

  // Proves A2.
  it('comes on a fresh connection for a POST while the server drops the kept one', async () => {
    const client = wire.client();
    const used = new Set<number>();
    wire.server.onRequest = (socket, request) => {
      // Kept, as far as the client was told; but the next request on it finds it closed.
      if (used.has(request.connection)) socket.resetAndDestroy();
      else answer(200, JOB)(socket, request);
      used.add(request.connection);
    };
    await client.getJob(ADDRESS);
    await setImmediate();
    expect(await client.sendMessage(MESSAGE)).toEqual({ verdict: 'accepted', job: JOB });
    expect(wire.server.requests).toHaveLength(2);
  });
});

describe('a key from a file', () => {
  const path = join(temporaryFolder(), 'key');

  beforeEach(async () => {
    wire.server.onRequest = answer(401, { error: 'no' });
    await writeFile(path, `${KEY}-1\n`);
  });

  it('is hidden after its rotation too', async () => {
    const client = wire.client({ apiKey: await keyFromFile(path) });
    await client.getJob(ADDRESS);
    await writeFile(path, 'another-key-altogether');
    wire.server.onRequest = answer(401, { error: `${KEY}-1 is not another-key-altogether` });
    expect(await client.sendMessage(MESSAGE)).toMatchObject({ serviceMessage: '[key] is not [key]' });
  });

  it('that can’t be had keeps the message from being sent', async () => {
    const current = () => Promise.reject(new ApiKeyError('the vault', 'is sealed'));
    const client = wire.client({ apiKey: { current } });
    const notSent = { verdict: 'not-sent', repeatable: true, answered: false, label: 'no key' };
    expect(await client.sendMessage(MESSAGE)).toEqual({ ...notSent, message: 'the vault is sealed' });
    expect(await client.getJob(ADDRESS)).toMatchObject({ kind: 'trouble', label: 'no key' });
    expect(wire.server.connections).toBe(0);
  });
});
