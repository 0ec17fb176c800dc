import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http2';
import path from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Client, Connection, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';
import type { Payload } from '@temporalio/common';
import {
  type CallOptions,
  connectClient,
  ensureSearchAttributes,
  FollowUpClient,
} from '../../src/entries/client';
import { CallRunner } from '../../src/client/call-runner';
import { eventually } from '../../tools/lib/eventually';
import { temporaryFolder } from '../harness/temporary-folder';
import { respondWithGrpcStatus, UNIMPLEMENTED, listen } from '../temporal/grpc-server';

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'Hello', requestId: 'r' };

/** The calls that the test's Temporal server has received, apart from the calls with which clients connect. */
let calls: string[];
/** The gRPC status with which this server responds to these calls. If the status is null, the server does not respond. */
let status: number | null;
let followUps: FollowUpClient;
/** The address of the test's Temporal server. */
let address: string;

const folder = temporaryFolder();

beforeEach(async () => {
  // Each test has its own list, because a server can receive a call after the test that made it has ended.
  const callsOfTest: string[] = [];
  calls = callsOfTest;
  status = null;
  const server = respondWithGrpcStatus(createServer(), (method) => {
    if (method === 'GetSystemInfo') return UNIMPLEMENTED;
    callsOfTest.push(method);
    return status;
  });
  address = await listen(server);
  const env = { TEMPORAL_ADDRESS: address, TEMPORAL_TLS: 'false', TEMPORAL_API_KEY: 'tmprl_secret' };
  followUps = await FollowUpClient.connect({ env });
});

afterEach(() => followUps.close());

/** Returns the forms in which a value can reach a log. */
function logged(value: unknown): string {
  return [inspect(value, { depth: Infinity }), inspect(value), toJson(value), String(value)].join('\n');
}

/** Returns the JSON of a value. Some objects of the SDK contain themselves, so they have no JSON. */
function toJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return 'no JSON';
  }
}

it('logging a client, a handle, a connection or an error does not show the API key or another secret', async () => {
  const TEMPORAL_ADDRESS = await listen(respondWithGrpcStatus(createServer(), () => 16));
  const secrets = { TEMPORAL_API_KEY: 'tmprl_secret', TEMPORAL_GRPC_META_X_SECRET: 'tmprl_secret_header' };
  const env = { TEMPORAL_ADDRESS, TEMPORAL_TLS: 'false', ...secrets };
  const lazy = await FollowUpClient.connect({ env, lazy: true });
  const connected = await connectClient({ env, lazy: true });
  const { batches, schedules } = lazy;
  const handles = [lazy, batches, schedules].map((each) => each.getHandle('x'));
  const errors = await Promise.all(
    [
      lazy.getHandle('x').describe(),
      lazy.start(REQUEST),
      batches.start([REQUEST]),
      FollowUpClient.connect({ env }),
      FollowUpClient.connect({ env: { ...env, TEMPORAL_API_KEY: 'tmprl_secret\u0001' } }),
    ].map((call) =>
      call.then(
        () => 'no error',
        (error: unknown) => error,
      ),
    ),
  );
  for (const part of [
    lazy,
    batches,
    schedules,
    connected,
    connected.client,
    lazy.client,
    ...handles,
    ...errors,
  ]) {
    expect(logged(part)).not.toContain('tmprl_secret');
    expect(part).not.toBe('no error');
  }
  await lazy.close();
  await connected.close();
});

it('a header that gRPC rejects is reported without its value', async () => {
  const connection = Connection.lazy({ address: '127.0.0.1:1', metadata: { 'x-secret': 'tmprl_secret\n' } });
  const error: unknown = await new FollowUpClient(new Client({ connection }))
    .getHandle('x')
    .describe()
    .catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'INVALID_CONFIGURATION' });
  expect(logged(error)).not.toContain('tmprl_secret');
  const registering: unknown = await ensureSearchAttributes(connection, 'default').catch(
    (reason: unknown) => reason,
  );
  expect(registering).toMatchObject({ code: 'INVALID_CONFIGURATION' });
  expect(logged(registering)).not.toContain('tmprl_secret');
  await connection.close();
});

it('the signal of a list is aborted when its iteration ends early', async () => {
  const calls = new CallRunner(new Client({ connection: Connection.lazy() }), 'follow-up');
  let listSignal: AbortSignal | undefined;
  // eslint-disable-next-line @typescript-eslint/require-await -- a list is asynchronous
  async function* list(_: Client, signal: AbortSignal) {
    listSignal = signal;
    yield 1;
    yield 2;
  }
  for await (const each of calls.iterate({}, list)) if (each === 1) break;
  expect(listSignal?.aborted).toBe(true);
});

it('connect rejects an unknown option, such as an address', async () => {
  const connecting = FollowUpClient.connect({ env: {}, address: 'temporal.example:7233' } as object);
  await expect(connecting).rejects.toThrow('address: is not a valid option');
});

type Call = (client: FollowUpClient, options: CallOptions) => Promise<unknown>;
type CallResult = Promise<unknown> | AsyncIterable<unknown>;

const REQUEST_WITHOUT_ID = { projectId: 'p', jobId: 'j', prompt: 'Hello' };

/** Returns calls of methods of a part of the client. Each method name has the arguments before the options. */
function callsOf(name: string, part: (client: FollowUpClient) => object, methods: Record<string, unknown[]>) {
  return Object.entries(methods).map(([method, args]): [string, Call] => [
    `${name}${method}`,
    async (client, options) => {
      const result = (part(client) as Record<string, (...all: unknown[]) => CallResult>)[method]?.(
        ...args,
        options,
      );
      return result && Symbol.asyncIterator in result ? result[Symbol.asyncIterator]().next() : result;
    },
  ]);
}

const CALLS: readonly [string, Call][] = [
  ...callsOf('', (client) => client, {
    start: [REQUEST],
    execute: [REQUEST],
    list: [{}],
    retryAll: [{ jobId: 'j' }],
  }),
  ...callsOf('handle.', (client) => client.getHandle('f'), {
    ...{ result: [], progress: [], describe: [], pollNow: [], cancel: [], retry: [] },
    ...{ extendDeadline: ['1h'], resolveDelivery: ['delivered'] },
  }),
  ...callsOf('batches.', (client) => client.batches, { start: [[REQUEST]] }),
  ...callsOf('batch.', (client) => client.batches.getHandle('b'), {
    ...{ progress: [], result: [], listResults: [], streamResults: [], watch: [] },
    ...{ pause: [], resume: [], cancel: [], retry: [], setConcurrency: [5] },
  }),
  [
    'schedules.create',
    (client, options) => client.schedules.create('s', [REQUEST_WITHOUT_ID], { spec: {}, ...options }),
  ],
  ...callsOf('schedule.', (client) => client.schedules.getHandle('s'), { update: [{}] }),
];
/** Calls that keep waiting while the Temporal server is unreachable. */
const WAITS = ['handle.result', 'batch.result', 'batch.streamResults'];
/** `watch` reports that the Temporal server does not respond, instead of failing. */
const FAILING_CALLS = CALLS.filter(([name]) => name !== 'batch.watch');
/** Calls that may have started a workflow although the Temporal server's response was lost. */
const STARTS = ['start', 'execute', 'handle.retry', 'batches.start', 'batch.retry'];

/** Returns the workflow ID of a call's error, if the client knows the ID without a response of the Temporal server. */
function workflowIdOf(call: string): unknown {
  if (call === 'batches.start') return expect.stringMatching(/^follow-up-batch:/);
  if (call === 'start' || call === 'execute') return 'follow-up:p:j:r';
  if (call === 'batch.result') return 'follow-up-batch:b';
  return call.startsWith('handle.') ? 'f' : null;
}

it('START_UNCONFIRMED advises against a repeated call if it would send messages of unknown delivery again', async () => {
  const message = async (call: Promise<unknown>) =>
    call.then(
      () => 'no error',
      (error: unknown) => (error as Error).message,
    );
  const batch = followUps.batches.getHandle('b');
  const timeout = 30;
  expect(await message(batch.retry({ timeout }))).toContain(
    'Repeat the same call; no message is sent twice.',
  );
  expect(await message(batch.retry({ timeout, includeUnknown: true }))).toContain(
    "Before you repeat the call, check the batch's progress, because a repeated call sends the messages of unknown delivery again.",
  );
});

describe('every call', () => {
  it.each(CALLS)('%s rejects invalid options; signal, timeout and close end it', async (name, call) => {
    for (const wrong of [{ timeuot: 5 }, ...[0, Number.NaN, 2 ** 31, '1s'].map((timeout) => ({ timeout }))])
      await expect(call(followUps, wrong as CallOptions)).rejects.toMatchObject({
        ...{ code: 'INVALID_REQUEST', problems: [{ field: Object.keys(wrong)[0] }] },
      });
    const reason = new Error('the caller has stopped waiting');
    await expect(call(followUps, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(calls).toEqual([]);
    const isStart = STARTS.includes(name);
    await expect(call(followUps, { timeout: 30 })).rejects.toMatchObject({
      code: isStart ? 'START_UNCONFIRMED' : 'WAIT_TIMEOUT',
      message: expect.stringMatching(
        / no response within 0\.03 s\.| did not end within 0\.03 s\. The timeout ends only the call\./,
      ),
      workflowId: workflowIdOf(name),
    });
    const late = AbortSignal.timeout(30);
    await expect(call(followUps, { signal: late })).rejects.toMatchObject({ name: 'TimeoutError' });
    calls.length = 0;
    const pending = call(followUps, {}).catch((error: unknown) => error);
    await eventually('the server has received the call', () => calls.length > 0, { intervalMs: 5 });
    await followUps[Symbol.asyncDispose]();
    expect(await pending).toMatchObject({
      code: isStart ? 'START_UNCONFIRMED' : 'CLIENT_CLOSED',
      workflowId: workflowIdOf(name),
    });
    await expect(call(followUps, {})).rejects.toMatchObject({ code: 'CLIENT_CLOSED' });
  });

  it.each(CALLS)('%s ends with an error code if the Temporal server rejects it', async (_name, call) => {
    status = 16;
    await expect(call(followUps, {})).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    status = 3;
    const codes = expect.stringMatching(/^(SERVER_ERROR|INVALID_REQUEST)$/);
    await expect(call(followUps, {})).rejects.toMatchObject({ code: codes });
  });

  it.each(FAILING_CALLS)('%s fails or times out if a gateway returns 404', async (name, call) => {
    const gateway = createServer().on('stream', (stream, { ':path': path = '' }) => {
      // The first call, with which a client connects, gets a response as if it reached the Temporal server.
      const grpcHeaders = {
        ':status': 200,
        'content-type': 'application/grpc',
        'grpc-status': String(UNIMPLEMENTED),
      };
      const isFirst = path.endsWith('/GetSystemInfo');
      stream.respond(isFirst ? grpcHeaders : { ':status': 404 }, { endStream: true });
    });
    const env = { TEMPORAL_ADDRESS: await listen(gateway) };
    const misrouted = await FollowUpClient.connect({ env });
    const code = STARTS.includes(name) ? 'START_UNCONFIRMED' : 'UNREACHABLE';
    const message = expect.stringMatching(/HTTP status code 404 .*check TEMPORAL_ADDRESS/);
    const [options, end] = WAITS.includes(name)
      ? [{ timeout: 300 }, { code: 'WAIT_TIMEOUT' }]
      : [{}, { code, message }];
    await expect(call(misrouted, options).finally(() => misrouted.close())).rejects.toMatchObject(end);
  });
});

/** Returns a client with a codec on the same connection. */
function withCodec(encode: (payloads: Payload[]) => Promise<Payload[]>): FollowUpClient {
  const codec = { encode, decode: (payloads: Payload[]) => Promise.resolve(payloads) };
  const { connection } = followUps.client;
  return new FollowUpClient(new Client({ connection, dataConverter: { payloadCodecs: [codec] } }));
}

it('batches.start starts no batch if its signal is aborted while it reads the items', async () => {
  status = 16;
  const signal = new AbortController();
  const reason = new Error('the caller has stopped');
  async function* items() {
    yield Promise.resolve(REQUEST_WITHOUT_ID);
    signal.abort(reason);
  }
  await expect(followUps.batches.start(items(), { signal: signal.signal })).rejects.toBe(reason);
  // A request of the ended call would reach the Temporal server before this request.
  await expect(followUps.getHandle('f').describe()).rejects.toThrow();
  expect(calls).toEqual(['DescribeWorkflowExecution']);
});

it('the next request of an aborted call is cancelled', async () => {
  const stop = new AbortController();
  const reason = new Error('the caller has stopped');
  const requests: Promise<unknown>[] = [];
  const call = new CallRunner(followUps.client, 'q').run({ signal: stop.signal }, async (client) => {
    stop.abort(reason);
    await Promise.resolve();
    requests.push(client.workflow.getHandle('f').describe());
    await Promise.all(requests);
  });
  await expect(call).rejects.toBe(reason);
  await eventually('the next request is made', () => requests.length > 0, { intervalMs: 1 });
  // The server never responds: the client itself has cancelled the request.
  await expect(Promise.all(requests)).rejects.toMatchObject({ cause: { code: 1 } });
});

it('an error of the caller’s item iterator is not reported as a codec error, also if the client has a codec', async () => {
  const cause = new Error('my database is away');
  const items: AsyncIterable<typeof REQUEST_WITHOUT_ID> = {
    [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(cause) }),
  };
  const told = {
    code: 'UNEXPECTED_FAILURE',
    message: `The items can't be read. The iterable threw an error: ${cause.message}`,
    cause,
  };
  const { batches } = withCodec((payloads) => Promise.resolve(payloads));
  await expect(batches.start(items)).rejects.toMatchObject(told);
});

it('names the data converter, not the spec, if it can’t convert the items of a schedule', async () => {
  const payloadConverterPath = path.join(folder, 'converter.js');
  const common = JSON.stringify(require.resolve('@temporalio/common'));
  const converter = 'new CompositePayloadConverter(new UndefinedPayloadConverter())';
  await writeFile(
    payloadConverterPath,
    `const { CompositePayloadConverter, UndefinedPayloadConverter } = require(${common});
     exports.payloadConverter = ${converter};`,
  );
  const { connection } = followUps.client;
  const { schedules } = new FollowUpClient(
    new Client({ connection, dataConverter: { payloadConverterPath } }),
  );
  await expect(schedules.create('s', [REQUEST_WITHOUT_ID], { spec: {} })).rejects.toMatchObject({
    code: 'INVALID_CONFIGURATION',
    problems: [{ field: "FOLLOW_UP_PLUGINS, or your Client's dataConverter" }],
  });
});

it('close closes the connection of connect, but not the connection of an SDK client that was passed in', async () => {
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

it('a caller’s own connection keeps its interceptors, and its requests are retried only by the client', async () => {
  status = 14;
  let attempts = 0;
  const connection = Connection.lazy({
    address,
    interceptors: [
      (options, nextCall) => {
        attempts += 1;
        return nextCall(options) as never;
      },
      makeGrpcRetryInterceptor(defaultGrpcRetryOptions()),
    ],
  });
  const caller = new AbortController();
  const own = new FollowUpClient(new Client({ connection }));
  const call = own
    .getHandle('f')
    .describe({ signal: caller.signal })
    .catch((error: unknown) => error);
  await eventually('the third attempt has failed', () => calls.length === 3, { intervalMs: 1 });
  expect(attempts).toBe(3);
  caller.abort();
  expect(await call).toMatchObject({ name: 'AbortError' });
  await connection.close();
});
