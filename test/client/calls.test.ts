import { createServer } from 'node:http2';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type CallOptions, FollowUpClient } from '../../src/client';
import { eventually } from '../harness/eventually';
import { answering, LETS_IN, listening } from '../temporal/grpc-server';

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'Hello', requestId: 'r' };

/** A Temporal server that lets everybody in, and answers nothing else unless it has a status to answer with. */
let calls: string[];
let status: number | null;
let followUps: FollowUpClient;

beforeEach(async () => {
  calls = [];
  status = null;
  const server = answering(createServer(), (method) => {
    if (method === 'GetSystemInfo') return LETS_IN;
    calls.push(method);
    return status;
  });
  const env = {
    ...{ TEMPORAL_ADDRESS: await listening(server), TEMPORAL_TLS: 'false', TEMPORAL_API_KEY: 'tmprl_secret' },
  };
  followUps = await FollowUpClient.connect({ env });
});

afterEach(() => followUps.close());

it.each([
  ['batches', () => followUps.batches],
  ['schedules', () => followUps.schedules],
  ['limits', () => followUps.limits],
  ['a handle', () => followUps.getHandle('f')],
  ["a batch's handle", () => followUps.batches.getHandle('b')],
  ["a schedule's handle", () => followUps.schedules.getHandle('s')],
])('%s shows a log nothing of the connection', (_, part) => {
  expect(inspect(part(), { depth: 12 }) + JSON.stringify(part())).not.toContain('tmprl_secret');
});

type Call = (client: FollowUpClient, options: CallOptions) => Promise<unknown>;

const first = <T>(list: AsyncIterable<T>) => list[Symbol.asyncIterator]().next();

const CALLS: readonly [string, Call][] = [
  ['start', (client, options) => client.start(REQUEST, options)],
  ['execute', (client, options) => client.execute(REQUEST, options)],
  ['list', (client, options) => first(client.list({}, options))],
  ['result', (client, options) => client.getHandle('f').result(options)],
  ['progress', (client, options) => client.getHandle('f').progress(options)],
  ['describe', (client, options) => client.getHandle('f').describe(options)],
  ['pollNow', (client, options) => client.getHandle('f').pollNow(options)],
  ['extendDeadline', (client, options) => client.getHandle('f').extendDeadline('1h', options)],
  ['resolveDelivery', (client, options) => client.getHandle('f').resolveDelivery('delivered', options)],
  ['cancel', (client, options) => client.getHandle('f').cancel(options)],
  ['retry', (client, options) => client.getHandle('f').retry(options)],
  ['batches.start', (client, options) => client.batches.start([REQUEST], options)],
  ['batch.progress', (client, options) => client.batches.getHandle('b').progress(options)],
  ['batch.result', (client, options) => client.batches.getHandle('b').result(options)],
  ['batch.results', (client, options) => first(client.batches.getHandle('b').results(options))],
  ['batch.settled', (client, options) => client.batches.getHandle('b').settled(options)],
  ['batch.watch', (client, options) => first(client.batches.getHandle('b').watch(options))],
  ['batch.pause', (client, options) => client.batches.getHandle('b').pause(options)],
  ['batch.resume', (client, options) => client.batches.getHandle('b').resume(options)],
  ['batch.setConcurrency', (client, options) => client.batches.getHandle('b').setConcurrency(5, options)],
  ['batch.cancel', (client, options) => client.batches.getHandle('b').cancel(options)],
  ['batch.retry', (client, options) => client.batches.getHandle('b').retry(options)],
  [
    'schedules.create',
    (client, options) => client.schedules.create('s', [UNNAMED], { spec: {}, ...options }),
  ],
  ['schedule.trigger', (client, options) => client.schedules.getHandle('s').trigger(undefined, options)],
  ['schedule.update', (client, options) => client.schedules.getHandle('s').update({}, options)],
  ['limits.get', (client, options) => client.limits.get(options)],
  ['limits.set', (client, options) => client.limits.set({ sendsTotal: '5/s' }, options)],
  ['limits.clear', (client, options) => client.limits.clear(options)],
];
/** They may have started something while nobody has told so. */
const STARTS = ['start', 'execute', 'retry', 'batches.start', 'batch.retry'];
const OF_HANDLE = 'result progress describe pollNow extendDeadline resolveDelivery cancel retry'.split(' ');
/** What the call is about, as far as it is known without the server. */
const WORKFLOW_IDS: Readonly<Record<string, string>> = {
  ...{ start: 'follow-up:p:j:r', execute: 'follow-up:p:j:r' },
  'batches.start': expect.stringMatching(/^follow-up-batch:/) as unknown as string,
  ...Object.fromEntries(OF_HANDLE.map((name) => [name, 'f'])),
};
const UNNAMED = { projectId: 'p', jobId: 'j', prompt: 'Hello' };

describe('every call', () => {
  it.each(CALLS)('%s with an aborted signal asks the server nothing', async (_name, call) => {
    const reason = new Error('nobody waits any more');
    await expect(call(followUps, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(calls).toEqual([]);
  });

  it.each(CALLS)('%s ends with its time-out, with the signal, and with the client', async (name, call) => {
    const isStart = STARTS.includes(name);
    await expect(call(followUps, { timeout: 30 })).rejects.toMatchObject({
      code: isStart ? 'NOT_CONFIRMED' : 'NO_ANSWER',
      message: expect.stringMatching(/ no answer within 0\.03 s\./),
      workflowId: WORKFLOW_IDS[name] ?? null,
    });
    const late = AbortSignal.timeout(30);
    await expect(call(followUps, { signal: late })).rejects.toMatchObject({ name: 'TimeoutError' });
    calls = [];
    const pending = call(followUps, {}).catch((error: unknown) => error);
    await eventually('the server is asked', () => calls.length > 0, { intervalMs: 5 });
    await followUps[Symbol.asyncDispose]();
    expect(await pending).toMatchObject({
      code: isStart ? 'NOT_CONFIRMED' : 'CLOSED',
      workflowId: WORKFLOW_IDS[name] ?? null,
    });
    await expect(call(followUps, {})).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it.each(CALLS)('%s that the server refuses has a code', async (_name, call) => {
    status = 16;
    await expect(call(followUps, {})).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    status = 3;
    const codes = expect.stringMatching(/^(SERVER_REFUSED|INVALID_REQUEST|LIMITS_UNAVAILABLE)$/);
    await expect(call(followUps, {})).rejects.toMatchObject({ code: codes });
  });

  it.each(CALLS)('%s by way of a gateway that answers 404 has not reached Temporal', async (name, call) => {
    const gateway = createServer((_request, response) => response.writeHead(404).end('no such route'));
    const env = { TEMPORAL_ADDRESS: await listening(gateway) };
    const lost = await FollowUpClient.connect({ env });
    // What waits for an end goes on waiting.
    const waits = name === 'result';
    const options = waits ? { timeout: 300 } : {};
    const error: unknown = await call(lost, options).catch((reason: unknown) => reason);
    await lost.close();
    const unreached = STARTS.includes(name) ? 'NOT_CONFIRMED' : 'UNREACHABLE';
    const message = waits ? /gave no answer/ : /HTTP status code 404: .*check TEMPORAL_ADDRESS/;
    const code = waits ? 'NO_ANSWER' : unreached;
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
  });

  it('limits of a server that has none for task queues are an error that says so', async () => {
    status = 12;
    for (const asked of [followUps.limits.set({ sendsTotal: '5/s' }), followUps.limits.get()])
      await expect(asked).rejects.toMatchObject({
        code: 'LIMITS_UNAVAILABLE',
        message: expect.stringMatching(/no limits of task queues.*Update the server/),
      });
  });

  it.each([
    [0, '0'],
    [Number.NaN, 'NaN'],
    [2 ** 31, '2147483648'],
    ['1s', '"1s"'],
  ])('refuses %p as a time-out', async (timeout, shown) => {
    const options = { timeout } as CallOptions;
    await expect(followUps.start(REQUEST, options)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      problems: [{ field: 'timeout', text: expect.stringMatching(` it is ${shown}$`) }],
    });
    expect(calls).toEqual([]);
  });
});

it('close leaves the connection open that it was given', async () => {
  status = 16;
  const { client } = followUps;
  await new FollowUpClient(client).close();
  await expect(client.workflow.getHandle('f').describe()).rejects.toThrow();
  expect(calls).not.toEqual([]);
  await followUps.close();
  calls = [];
  await expect(client.workflow.getHandle('f').describe()).rejects.toThrow();
  expect(calls).toEqual([]);
});

it('a call whose retry is due when its client is closed ends for good, and no timer throws', async () => {
  status = 14;
  const { setTimeout } = globalThis;
  // The timer is the test's: Node ends a process whose timer throws.
  const due = new Promise<() => void>((resolve) => {
    jest.spyOn(globalThis, 'setTimeout').mockImplementation(((then: () => void, ...more: [number]) => {
      if (then.name !== 'retry') return setTimeout(then, ...more);
      resolve(then);
      return setTimeout(() => undefined);
    }) as typeof setTimeout);
  });
  const end = followUps
    .getHandle('f')
    .result()
    .catch((error: unknown) => error);
  const retry = await due;
  await followUps.close();
  expect(await end).toMatchObject({ code: 'CLOSED' });
  calls = [];
  retry();
  await eventually('it is made once more', () => calls.length > 0, { intervalMs: 5 });
  jest.restoreAllMocks();
});
