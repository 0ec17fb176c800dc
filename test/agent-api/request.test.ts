import { setImmediate } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { JOB_KEY, JOB, KEY, MESSAGE, AgentApiTest } from './agent-api-under-test';
import { respondWith } from './misbehaving-server';

const agentApiTest = new AgentApiTest();

it('a request has each ID as one encoded URL segment below the base URL, exactly the specified headers, and the unaltered prompt', async () => {
  agentApiTest.server.onRequest = respondWith(200, JOB);
  const address = { projectId: 'docs/..x y\\', jobId: "jöb?#%'()*!~.-_" };
  // The prompt has almost the maximum of 256 KiB of UTF-8.
  const prompt = `one\r\n\ttwo\n\n \u2028 Grüße 你好 \u0000 "quoted" \\ </script>${'🙂'.repeat(65_516)}`;
  for (const prefix of ['', '/', '/a/b//']) {
    const client = agentApiTest.client({ baseUrl: agentApiTest.server.url + prefix });
    await client.getJob(address);
    await client.sendMessage({ ...address, prompt });
    const [get, post] = agentApiTest.server.requests.splice(0);
    const path = `${prefix.replace(/\/+$/, '')}/v2/agent/docs%2F..x%20y%5C/job/j%C3%B6b%3F%23%25%27%28%29%2A%21~.-_`;
    const both = {
      authorization: `Bearer ${KEY}`,
      accept: 'application/json',
      'accept-encoding': 'identity',
      'cache-control': 'no-cache',
      'user-agent': 'agent-follow-up',
      host: agentApiTest.server.host,
    };
    expect(get).toMatchObject({ method: 'GET', path });
    expect(get?.headers).toEqual({ ...both, connection: 'keep-alive' });
    expect(get?.body).toHaveLength(0);
    expect(post).toMatchObject({ method: 'POST', path: `${path}/message` });
    const bodyHeaders = { 'content-type': 'application/json', 'content-length': String(post?.body.length) };
    expect(post?.headers).toEqual({ ...both, ...bodyHeaders, connection: 'close' });
    const sent = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(post?.body)) as unknown;
    expect(sent).toStrictEqual({ prompt });
  }
});

// Proves A2.
it('each POST uses a new connection, and the GETs share one connection; if the shared connection is reset, only that read fails', async () => {
  const client = agentApiTest.client();
  agentApiTest.server.onRequest = (socket, request) => {
    if (agentApiTest.server.requests.length === 5) socket.resetAndDestroy();
    else respondWith(200, JOB)(socket, request);
  };
  const kinds = [];
  for (let n = 0; n < 3; n += 1) {
    kinds.push((await client.getJob(JOB_KEY)).kind);
    await client.sendMessage(MESSAGE);
  }
  // undici reuses a connection one turn of the event loop after its response.
  await setImmediate();
  kinds.push((await client.getJob(JOB_KEY)).kind);
  expect(kinds).toEqual(['job', 'job', 'failure', 'job']);
  const made = agentApiTest.server.requests.map(({ method, connection }) => `${method} on ${connection}`);
  const each = ['GET on 1', 'POST on 2', 'GET on 1', 'POST on 3', 'GET on 1', 'POST on 4', 'GET on 5'];
  expect(made).toEqual(each);
});
