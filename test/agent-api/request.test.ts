import { setImmediate } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { JOB_KEY, JOB, KEY, MESSAGE, AgentApiTest } from './agent-api-under-test';
import { respondWith } from './misbehaving-server';

const agentApiTest = new AgentApiTest();

it('a request names the job in segments below the base URL, with the headers of the specification, and the prompt unaltered', async () => {
  agentApiTest.server.onRequest = respondWith(200, JOB);
  const address = { projectId: 'docs/..x y\\', jobId: "jöb?#%'()*!~.-_" };
  // Up to 256 KiB.
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
    const ofBody = { 'content-type': 'application/json', 'content-length': String(post?.body.length) };
    expect(post?.headers).toEqual({ ...both, ...ofBody, connection: 'close' });
    const sent = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(post?.body)) as unknown;
    expect(sent).toStrictEqual({ prompt });
  }
});

// Proves A2.
it('each POST comes on a fresh connection, and GETs on a kept one, whose end is a failed read', async () => {
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
  // undici gives a kept connection out again one turn of the event loop after its answer.
  await setImmediate();
  kinds.push((await client.getJob(JOB_KEY)).kind);
  expect(kinds).toEqual(['job', 'job', 'failure', 'job']);
  const made = agentApiTest.server.requests.map(({ method, connection }) => `${method} on ${connection}`);
  const each = ['GET on 1', 'POST on 2', 'GET on 1', 'POST on 3', 'GET on 1', 'POST on 4', 'GET on 5'];
  expect(made).toEqual(each);
});
