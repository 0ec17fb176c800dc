import { createServer } from 'node:http2';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import {
  checkBatch,
  checkSchedule,
  connectClient,
  ensureSearchAttributes,
  FollowUpClient,
  followUpWorkflowId,
  InvalidRequestError,
  type ScheduleHandle,
} from '../../src/entries/client';
import { InMemoryFollowUpClient } from '../../src/entries/testing';
import { listen, respondWithGrpcStatus, UNIMPLEMENTED } from '../temporal/grpc-server';

/* Callers without TypeScript can pass any value. Every public function therefore rejects an invalid argument with its name. */

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'Hello', requestId: 'r' };
const ITEM = { projectId: 'p', jobId: 'j', prompt: 'Hello' };

/** Values that are not plain objects. */
const NO_OBJECTS = [null, 5, 'text', true, Symbol('s'), () => undefined, []];
const NO_IDS = [null, 5, '', {}, Symbol('s'), '\ud800'];
const NO_RUN_IDS = [...NO_IDS, 'latest'];
const NO_CALL_OPTIONS = [
  ...NO_OBJECTS,
  { unknown: 1 },
  { signal: {} },
  { signal: null },
  { timeout: '1s' },
  { timeout: NaN },
];

/** A parameter: a valid value, and invalid values. */
type Parameter = readonly [valid: unknown, invalid: readonly unknown[]];
type Target = Readonly<Record<string, unknown>>;

const OPTIONS: Parameter = [{}, NO_CALL_OPTIONS];
const REQUEST_PARAMETER: Parameter = [REQUEST, [...NO_OBJECTS, undefined, {}, { ...REQUEST, jobId: 5 }]];
const ID: Parameter = ['follow-up:p:j:r', [...NO_IDS, undefined]];
const ITEMS: Parameter = [[ITEM], [null, undefined, 5, {}, [null], [{ ...ITEM, prompt: 5 }]]];

/** Parameters that several kinds of clients and handles have in common. */
const FOLLOW_UP_CLIENT: Readonly<Record<string, readonly Parameter[]>> = {
  start: [REQUEST_PARAMETER, [{}, [...NO_CALL_OPTIONS, { startDelay: 5 }]]],
  execute: [REQUEST_PARAMETER, [{}, [...NO_CALL_OPTIONS, { startDelay: '5' }]]],
  getHandle: [ID, [undefined, NO_RUN_IDS]],
  list: [
    [
      {},
      [
        ...NO_OBJECTS,
        { unknown: 1 },
        { phase: 5 },
        { outcome: "a'b" },
        { canRetry: 1 },
        { endedAfter: 'noon' },
      ],
    ],
    OPTIONS,
  ],
  retryAll: [
    [{ outcome: 'rejected' }, [...NO_OBJECTS, undefined, {}, { unknown: 1 }, { startedBefore: 5 }]],
    [{}, [...NO_CALL_OPTIONS, { limit: 0 }, { limit: '5' }, { dryRun: 1 }]],
  ],
};
const FOLLOW_UP_HANDLE: Readonly<Record<string, readonly Parameter[]>> = {
  ...Object.fromEntries(
    ['result', 'progress', 'describe', 'pollNow', 'cancel', 'retry'].map((name) => [name, [OPTIONS]]),
  ),
  extendDeadline: [['1h', [null, undefined, 5, '5', {}]], OPTIONS],
  resolveDelivery: [['delivered', [null, undefined, 5, 'perhaps']], OPTIONS],
};

/** The methods without a parameter. */
const WITHOUT_PARAMETERS = ['constructor', 'client', 'namespace', 'close', 'sent'];

let followUps: FollowUpClient;
const inMemory = new InMemoryFollowUpClient();

beforeAll(async () => {
  // A call whose arguments were accepted fails at once with `SERVER_ERROR`.
  const TEMPORAL_ADDRESS = await listen(respondWithGrpcStatus(createServer(), () => UNIMPLEMENTED));
  followUps = await FollowUpClient.connect({ env: { TEMPORAL_ADDRESS } });
});
afterAll(() => followUps.close());

/** Each part of the API, and the parameters of its functions. */
const PARTS: readonly [string, () => object, Readonly<Record<string, readonly Parameter[]>>][] = [
  ['FollowUpClient', () => followUps, FOLLOW_UP_CLIENT],
  ['FollowUpHandle', () => followUps.getHandle('follow-up:p:j:r'), FOLLOW_UP_HANDLE],
  [
    'InMemoryFollowUpClient',
    () => inMemory,
    {
      ...FOLLOW_UP_CLIENT,
      setOutcome: [ID, [{}, NO_OBJECTS]],
      setAvailability: [['all', [null, undefined, 5, 'some']]],
    },
  ],
  ['InMemoryFollowUpHandle', () => inMemory.getHandle('follow-up:p:j:r'), FOLLOW_UP_HANDLE],
  [
    'BatchClient',
    () => followUps.batches,
    {
      start: [ITEMS, [{}, [...NO_CALL_OPTIONS, { batchId: 5 }, { concurrency: 0 }, { maxFailures: 5 }]]],
      getHandle: [ID],
    },
  ],
  [
    'BatchHandle',
    () => followUps.batches.getHandle('b'),
    {
      ...Object.fromEntries(
        ['progress', 'result', 'streamResults', 'listResults', 'watch', 'pause', 'resume'].map((name) => [
          name,
          [OPTIONS],
        ]),
      ),
      setConcurrency: [[5, [null, undefined, 0, '5']], OPTIONS],
      cancel: [[{}, [...NO_CALL_OPTIONS, { cancelRunning: 1 }]]],
      retry: [[{}, [...NO_CALL_OPTIONS, { includeUnknown: 1 }, { concurrency: 0 }]]],
    },
  ],
  [
    'ScheduleClient',
    () => followUps.schedules,
    {
      create: [
        ID,
        ITEMS,
        [{ spec: {} }, [...NO_CALL_OPTIONS, undefined, { spec: 5 }, { spec: {}, policies: 5 }]],
      ],
      getHandle: [ID],
    },
  ],
  [
    'ScheduleHandle',
    () => ({
      update: (...args: Parameters<ScheduleHandle['update']>) =>
        followUps.schedules.getHandle('s').update(...args),
    }),
    { update: [[{}, [...NO_OBJECTS, undefined, { unknown: 1 }, { spec: 5 }, { items: [5] }]], OPTIONS] },
  ],
  [
    'the functions',
    () => ({
      connect: (options: object) => FollowUpClient.connect(options),
      construct: (...args: ConstructorParameters<typeof FollowUpClient>) => new FollowUpClient(...args),
      ...{ connectClient, checkBatch, checkSchedule, ensureSearchAttributes, followUpWorkflowId },
    }),
    {
      connect: [[{}, [...NO_CALL_OPTIONS, { env: 5 }, { lazy: 1 }, { taskQueue: 5 }, { taskQueue: '' }]]],
      construct: [
        [{ workflow: {} }, [null, undefined, 5, {}]],
        [{}, [...NO_OBJECTS, { unknown: 1 }, { taskQueue: 5 }]],
      ],
      connectClient: [[{}, [...NO_CALL_OPTIONS, { env: 5 }, { taskQueue: 'q' }]]],
      checkBatch: [ITEMS, [{}, [...NO_OBJECTS, { unknown: 1 }, { batchId: '' }]]],
      checkSchedule: [ID, ITEMS, [{}, [...NO_OBJECTS, { unknown: 1 }, { allowDuplicates: 1 }]]],
      ensureSearchAttributes: [[{ workflowService: {} }, [null, undefined, 5, {}]], ID],
      followUpWorkflowId: [ID, ID, ID],
    },
  ],
];

/** Makes a call, and returns the error that the call throws or rejects with. */
async function errorOf(call: () => unknown): Promise<unknown> {
  try {
    const result = call();
    const isList = typeof result === 'object' && result !== null && Symbol.asyncIterator in result;
    await (isList ? (result as AsyncIterable<unknown>)[Symbol.asyncIterator]().next() : result);
    return 'no error';
  } catch (error) {
    return error;
  }
}

it.each(PARTS)(
  '%s rejects each invalid argument with INVALID_REQUEST and its name',
  async (_, open, functions) => {
    const part = open() as Target;
    for (const [name, parameters] of Object.entries(functions)) {
      const call = part[name] as (...args: unknown[]) => unknown;
      for (const [position, [, invalid]] of parameters.entries()) {
        for (const value of invalid) {
          const args = parameters.map(([valid], index) => (index === position ? value : valid));
          const error = await errorOf(() => call.apply(part, args));
          const facts = { name, position, value, error };
          expect({ ...facts, isInvalidRequest: error instanceof InvalidRequestError }).toEqual({
            ...facts,
            isInvalidRequest: true,
          });
          expect((error as InvalidRequestError).problems).not.toEqual([]);
          for (const { field } of (error as InvalidRequestError).problems) expect(field).toMatch(/^\w+/);
        }
      }
    }
  },
);

it.each(PARTS.slice(0, -2))('the table above has every method of %s', (_, open, functions) => {
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(open()));
  const isPublic = (method: string) =>
    !['run', 'update'].includes(method) && !WITHOUT_PARAMETERS.includes(method);
  expect(methods.filter(isPublic).sort()).toEqual(Object.keys(functions).sort());
});
