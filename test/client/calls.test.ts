import { createServer } from 'node:http2';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Client } from '@temporalio/client';
import type { Payload } from '@temporalio/common';
import { type CallOptions, FollowUpClient } from '../../src/client';
import { Calls } from '../../src/client/call';
import { eventually } from '../harness/eventually';
import { answering, LETS_IN, listening } from '../temporal/grpc-server';

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'Hello', requestId: 'r' };

/** A Temporal server that lets everybody in, and answers nothing else unless it has a status to answer with. */
let calls: string[];
let status: number | null;
let followUps: FollowUpClient;

beforeEach(async () => {
  // Of this test alone: a server hears of a call that has ended some time later.
  const asked: string[] = [];
  calls = asked;
  status = null;
  const server = answering(createServer(), (method) => {
    if (method === 'GetSystemInfo') return LETS_IN;
    asked.push(method);
    return status;
  });
  const TEMPORAL_ADDRESS = await listening(server);
  const env = { TEMPORAL_ADDRESS, TEMPORAL_TLS: 'false', TEMPORAL_API_KEY: 'tmprl_secret' };
  followUps = await FollowUpClient.connect({ env });
});

afterEach(() => followUps.close());

it('no part of a client shows a log anything of the connection', () => {
  const { batches, schedules, limits } = followUps;
  const handles = [followUps, batches, schedules].map((each) => each.getHandle('x'));
  for (const part of [batches, schedules, limits, ...handles])
    expect(inspect(part, { depth: 12 }) + JSON.stringify(part)).not.toContain('tmprl_secret');
});

type Call = (client: FollowUpClient, options: CallOptions) => Promise<unknown>;

const first = <T>(list: AsyncIterable<T>) => list[Symbol.asyncIterator]().next();

const OF_HANDLE = ['result', 'progress', 'describe', 'pollNow', 'cancel', 'retry'] as const;
const OF_BATCH = ['progress', 'result', 'settled', 'pause', 'resume', 'cancel', 'retry'] as const;
const UNNAMED = { projectId: 'p', jobId: 'j', prompt: 'Hello' };

const CALLS: readonly (readonly [string, Call])[] = [
  ...OF_HANDLE.map((name): [string, Call] => [
    name,
    (client, options) => client.getHandle('f')[name](options),
  ]),
  ['extendDeadline', (client, options) => client.getHandle('f').extendDeadline('1h', options)],
  ['resolveDelivery', (client, options) => client.getHandle('f').resolveDelivery('delivered', options)],
  ['start', (client, options) => client.start(REQUEST, options)],
  ['execute', (client, options) => client.execute(REQUEST, options)],
  ['list', (client, options) => first(client.list({}, options))],
  ...OF_BATCH.map((name): [string, Call] => [
    `batch.${name}`,
    (client, options) => client.batches.getHandle('b')[name](options),
  ]),
  ['batch.results', (client, options) => first(client.batches.getHandle('b').results(options))],
  ['batch.watch', (client, options) => first(client.batches.getHandle('b').watch(options))],
  ['batch.setConcurrency', (client, options) => client.batches.getHandle('b').setConcurrency(5, options)],
  ['batches.start', (client, options) => client.batches.start([REQUEST], options)],
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
/** What the call is about, as far as it is known without the server. */
const WORKFLOW_IDS: Readonly<Record<string, string>> = {
  ...{ start: 'follow-up:p:j:r', execute: 'follow-up:p:j:r' },
  'batches.start': expect.stringMatching(/^follow-up-batch:/) as unknown as string,
  ...Object.fromEntries([...OF_HANDLE, 'extendDeadline', 'resolveDelivery'].map((name) => [name, 'f'])),
};

describe('every call', () => {
  it.each(CALLS)('%s ends with its signal, its time-out, and its client', async (name, call) => {
    const reason = new Error('nobody waits any more');
    await expect(call(followUps, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(calls).toEqual([]);
    const isStart = STARTS.includes(name);
    await expect(call(followUps, { timeout: 30 })).rejects.toMatchObject({
      code: isStart ? 'NOT_CONFIRMED' : 'NO_ANSWER',
      message: expect.stringMatching(/ no answer within 0\.03 s\./),
      workflowId: WORKFLOW_IDS[name] ?? null,
    });
    const late = AbortSignal.timeout(30);
    await expect(call(followUps, { signal: late })).rejects.toMatchObject({ name: 'TimeoutError' });
    calls.length = 0;
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
    const unreached = STARTS.includes(name) ? 'NOT_CONFIRMED' : 'UNREACHABLE';
    const message = expect.stringMatching(/HTTP status code 404: .*check TEMPORAL_ADDRESS/);
    // What waits for an end goes on waiting.
    const [options, end] =
      name === 'result' ? [{ timeout: 300 }, { code: 'NO_ANSWER' }] : [{}, { code: unreached, message }];
    await expect(call(lost, options).finally(() => lost.close())).rejects.toMatchObject(end);
  });

  it('limits of a server that has none for task queues are an error that says so', async () => {
    status = 12;
    for (const asked of [followUps.limits.set({ sendsTotal: '5/s' }), followUps.limits.get()])
      await expect(asked).rejects.toMatchObject({
        code: 'LIMITS_UNAVAILABLE',
        message: expect.stringMatching(/no limits of task queues.*Update the server/),
      });
  });

  it.each([0, Number.NaN, 2 ** 31, '1s'])('refuses %j as a time-out', async (timeout) => {
    const text = expect.stringContaining(` it is ${typeof timeout === 'string' ? '"1s"' : timeout}`);
    const refused = { code: 'INVALID_REQUEST', problems: [{ field: 'timeout', text }] };
    await expect(followUps.start(REQUEST, { timeout } as CallOptions)).rejects.toMatchObject(refused);
    expect(calls).toEqual([]);
  });

  it.each(CALLS)('%s refuses an option that it does not have', async (name, call) => {
    const refused = { code: 'INVALID_REQUEST', problems: [{ field: 'timeuot' }] };
    await expect(call(followUps, { timeuot: 5 } as CallOptions)).rejects.toMatchObject(refused);
    expect(calls).toEqual([]);
  });
});

const CODEC = { decode: (payloads: Payload[]) => Promise.resolve(payloads) };

it.each<[string, (client: FollowUpClient, abort: () => void, options: CallOptions) => Promise<unknown>]>([
  [
    'items are read',
    (client, abort, options) => {
      async function* items() {
        yield Promise.resolve(UNNAMED);
        abort();
      }
      return client.batches.start(items(), options);
    },
  ],
  ['a request is encoded', (client, _, options) => client.start(REQUEST, options)],
  [
    'a schedule is encoded',
    (client, _, options) => client.schedules.create('s', [UNNAMED], { spec: {}, ...options }),
  ],
])('asks nothing any more of the server if its signal is aborted while %s', async (_, call) => {
  status = 16;
  const { connection } = followUps.client;
  const signal = new AbortController();
  const reason = new Error('nobody waits any more');
  const abort = () => signal.abort(reason);
  const encode = (payloads: Payload[]) => Promise.resolve(payloads).finally(abort);
  const slow = new FollowUpClient(
    new Client({ connection, dataConverter: { payloadCodecs: [{ ...CODEC, encode }] } }),
  );
  await expect(call(slow, abort, { signal: signal.signal })).rejects.toBe(reason);
  // What the call still did would have come before.
  await expect(followUps.getHandle('f').describe()).rejects.toThrow();
  expect(calls).toEqual(['DescribeWorkflowExecution']);
});

it('an error of the items themselves is told in its own words, also to a client with codecs', async () => {
  const { connection } = followUps.client;
  const encode = CODEC.decode;
  const own = new FollowUpClient(
    new Client({ connection, dataConverter: { payloadCodecs: [{ ...CODEC, encode }] } }),
  );
  const cause = new Error('my database is away');
  const items: AsyncIterable<typeof UNNAMED> = {
    [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(cause) }),
  };
  const message = "The items can't be read: my database is away";
  const told = { code: 'UNEXPECTED_FAILURE', message, cause };
  await expect(own.batches.start(items)).rejects.toMatchObject(told);
});

it('close leaves the connection open that it was given', async () => {
  status = 16;
  const { client } = followUps;
  await new FollowUpClient(client).close();
  await expect(client.workflow.getHandle('f').describe()).rejects.toThrow();
  expect(calls).not.toEqual([]);
  await followUps.close();
  calls.length = 0;
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
  const result = followUps.getHandle('f').result();
  const end = result.catch((error: unknown) => error);
  const retry = await due;
  await followUps.close();
  expect(await end).toMatchObject({ code: 'CLOSED' });
  calls.length = 0;
  retry();
  await eventually('it is made once more', () => calls.length > 0, { intervalMs: 5 });
  jest.restoreAllMocks();
});

it('an answer that comes after the end of its call finds its way, also in a service that calls itself', async () => {
  let answer: () => void = () => undefined;
  const due = new Promise<void>((resolve) => (answer = resolve));
  // As protobufjs makes the one of a native connection.
  const service = {
    async ask(): Promise<string> {
      await due;
      return this.word();
    },
    word: () => 'answered',
  };
  const { client } = followUps;
  const connection = Object.create(client.connection, { workflowService: { value: service } }) as never;
  let asked: Promise<string> | undefined;
  const ended = new AbortController();
  const call = new Calls(new Client({ connection }), 'q').run({ signal: ended.signal }, (own) => {
    asked = (own.workflowService as unknown as typeof service).ask();
    return asked;
  });
  await eventually('it is asked', () => asked !== undefined, { intervalMs: 1 });
  ended.abort(new Error('enough'));
  await expect(call).rejects.toThrow('enough');
  answer();
  expect(await asked).toBe('answered');
});
