import { expect, it } from '@jest/globals';
import { Cooldowns } from '../../src/agent-api/cooldowns';
import { JOB_KEY, JOB, MESSAGE, AgentApiTest } from './agent-api-under-test';
import { respondWith } from './misbehaving-server';

const agentApiTest = new AgentApiTest();

const REQUESTED = expect.stringMatching(
  /^the project's POSTs are paused until \S+Z, because the agent service requested this wait with Retry-After$/,
);
const BACKOFF = expect.stringMatching(
  /because the agent service did not process a POST because of its rate limit \(cool-down 1 in a row\)$/,
);

// Proves A4.
it.each<['POST' | 'GET', number, Readonly<Record<string, string>>, unknown]>([
  ['POST', 429, { 'retry-after': '3600' }, REQUESTED],
  ['POST', 429, {}, BACKOFF],
  ['POST', 403, { 'retry-after': '3600' }, REQUESTED],
  ['POST', 403, { 'retry-after': 'soon' }, BACKOFF],
  ['POST', 403, {}, null],
  ['POST', 401, { 'retry-after': '30' }, null],
  ['POST', 404, { 'retry-after': '30' }, null],
  ['POST', 500, {}, null],
  ['POST', 503, { 'retry-after': '30' }, null],
  ['GET', 429, { 'retry-after': '30' }, null],
  ['GET', 429, {}, null],
  ['GET', 503, { 'retry-after': '30' }, null],
])(
  'a %s that receives %d with the headers %j starts a cool-down only as the contract states, and only for its project and client',
  async (method, status, headers, message) => {
    agentApiTest.server.onRequest = respondWith(status, { error: 'slow down' }, headers);
    const client = agentApiTest.client();
    await (method === 'GET' ? client.getJob(JOB_KEY) : client.sendMessage(MESSAGE));
    const cooldown = { label: 'cooling_down', message, retryAfterMs: expect.any(Number) };
    expect(client.cooldown(JOB_KEY.projectId)).toEqual(message === null ? null : cooldown);
    expect(client.cooldown('other')).toBeNull();
    expect(agentApiTest.client().cooldown(JOB_KEY.projectId)).toBeNull();
  },
);

// Proves A4.
it('two spellings of the UUID of a project have one cool-down', async () => {
  const projectId = 'b6b7e2f4-0d5c-4b6e-9b64-7b3d8e9e1a10';
  const client = agentApiTest.client();
  agentApiTest.server.onRequest = respondWith(429, { error: 'slow down' });
  await client.sendMessage({ ...MESSAGE, projectId: projectId.toUpperCase() });
  expect(client.cooldown(projectId)).not.toBeNull();
});

it('during a cool-down, the client still makes reads and any POST that the caller starts', async () => {
  agentApiTest.server.onRequest = respondWith(429, { error: 'slow down' }, { 'retry-after': '3600' });
  const client = agentApiTest.client();
  await client.sendMessage(MESSAGE);
  agentApiTest.server.onRequest = respondWith(200, JOB);
  expect(await client.getJob(JOB_KEY)).toEqual({ kind: 'job', job: JOB });
  expect(await client.sendMessage(MESSAGE)).toEqual({ verdict: 'accepted', job: JOB });
  expect(client.cooldown(JOB_KEY.projectId)?.retryAfterMs).toBeGreaterThan(3_590_000);
});

it('without Retry-After, a cool-down doubles up to five minutes; no response shortens it; the length is limited to one hour and the number to 1,000 projects', () => {
  let now = 0;
  const cooldowns = new Cooldowns(
    () => now,
    () => 0.5,
  );
  const left = () => cooldowns.find('docs')?.retryAfterMs;
  const reject = (retryAfterMs?: number) => {
    cooldowns.recordResponse('docs', true, retryAfterMs);
  };
  const succeed = () => {
    cooldowns.recordResponse('docs', false, undefined);
  };
  const lengths = Array.from({ length: 8 }, () => {
    reject();
    // A POST that was in progress when the cool-down started is also rejected.
    reject();
    // The random share is 5 percent here.
    const lengthMs = (left() ?? 0) / 1.05;
    now += lengthMs;
    return lengthMs / 1_000;
  });
  expect([...lengths, left()]).toEqual([5, 10, 20, 40, 80, 160, 300, 300, undefined]);
  succeed();
  reject();
  expect(left()).toBe(5_250);
  reject(1e12);
  reject(1_000);
  succeed();
  expect(left()).toBe(3_600_000 * 1.05);
  for (let n = 0; n < 1_000; n += 1) cooldowns.recordResponse(`project-${n}`, true, 1_000);
  expect(left()).toBeUndefined();
  expect(cooldowns.find('project-0')).not.toBeNull();
});
