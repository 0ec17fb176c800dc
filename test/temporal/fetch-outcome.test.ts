import { beforeEach, expect, it, jest } from '@jest/globals';
import { Context } from '@temporalio/activity';
import { Client } from '@temporalio/client';
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import { BatchItemStore } from '../../src/activities/batch/batch-item-store';
import { followUpResult } from '../../src/activities/follow-up-result';
import { BatchResultReader, type BatchDescription } from '../../src/client/batch/describe';
import { EMPTY_BOARD } from '../../src/batch/board';
import type { BatchMemo } from '../../src/batch/memo';
import { sha256Hex } from '../../src/contract/ids';
import { MEMO_PROMPT_DIGEST } from '../../src/contract/names';
import type { ItemsSource } from '../../src/temporal/batch-items';
import { fetchOutcome } from '../../src/temporal/fetch-outcome';
import { msNumberToTs } from '@temporalio/common/lib/time';
import { JOB, RECEIPT } from '../harness/fixtures';

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'Hello', requestId: 'r' };
const REFERENCE = { workflowId: 'follow-up:p:j:r', promptDigest: sha256Hex('Hello') };

/** The function with which the client's codec decodes each payload. */
let decode: (payload: Payload) => Payload;
const failToDecode = () => {
  throw new Error('the keys are throttled');
};
beforeEach(() => {
  decode = failToDecode;
  jest.restoreAllMocks();
});

const payloads = (value: unknown) => ({ payloads: [defaultPayloadConverter.toPayload(value)] });

/** Returns a connection to a Temporal server that has one follow-up. @param changes replaces fields of the description */
function connectionTo(state: 'completed' | 'running', changes: object) {
  const [closeTime] = state === 'completed' ? [msNumberToTs(1_000)] : [];
  const info = {
    execution: { workflowId: REFERENCE.workflowId, runId: 'run' },
    type: { name: 'followUp' },
    startTime: msNumberToTs(0),
    ...(closeTime && { closeTime }),
    historyLength: { toNumber: () => 2 },
    status: state === 'completed' ? 2 : 1,
    memo: { fields: { [MEMO_PROMPT_DIGEST]: defaultPayloadConverter.toPayload(REFERENCE.promptDigest) } },
    ...changes,
  };
  const result = payloads({ ...JOB, status: 'completed', receipt: RECEIPT });
  const events = [
    {
      workflowExecutionStartedEventAttributes: { input: payloads({}) },
      workflowExecutionCompletedEventAttributes: { result },
    },
  ];
  return {
    workflowService: {
      describeWorkflowExecution: () => Promise.resolve({ workflowExecutionInfo: info }),
      listWorkflowExecutions: () => Promise.resolve({ executions: [info], nextPageToken: new Uint8Array() }),
      getWorkflowExecutionHistory: () => Promise.resolve({ history: { events } }),
    },
    plugins: [],
    withDeadline: <T>(_: unknown, call: () => Promise<T>) => call(),
    withAbortSignal: <T>(_: unknown, call: () => Promise<T>) => call(),
  };
}

/** Returns a client with a codec, for a Temporal server that has one follow-up. */
function clientOf(state: 'completed' | 'running' = 'completed', changes: object = {}): Client {
  const codec = {
    encode: (payloads: Payload[]) => Promise.resolve(payloads),
    // eslint-disable-next-line @typescript-eslint/require-await -- an error of `decode` must reject the promise
    decode: async (payloads: Payload[]) => payloads.map((payload) => decode(payload)),
  };
  const connection = connectionTo(state, changes) as never;
  return new Client({ connection, namespace: 'in-memory', dataConverter: { payloadCodecs: [codec] } });
}

const unreadable = (reason: string) => ({ outcome: 'unreadable', message: expect.stringContaining(reason) });

it('a running follow-up has no outcome if its memo can’t be decoded, but an unknown encoding makes it unreadable', async () => {
  const { outcome, unreadableOutcome } = await fetchOutcome(clientOf('running'), REFERENCE);
  expect([outcome, unreadableOutcome]).toEqual([null, undefined]);
  decode = (payload) => ({ ...payload, metadata: { encoding: Buffer.from('binary/encrypted') } });
  const unknownEncoding = unreadable('Unknown encoding: binary/encrypted');
  for (const state of ['completed', 'running'] as const)
    expect(await fetchOutcome(clientOf(state), REFERENCE)).toMatchObject({ outcome: unknownEncoding });
});

// Proves B7.
it.each([
  [
    'another prompt',
    { memo: { fields: { [MEMO_PROMPT_DIGEST]: defaultPayloadConverter.toPayload('other') } } },
  ],
  ['a prompt that can no longer be compared', { memo: null }],
  ['another workflow type', { type: { name: 'other' } }],
])('a workflow with %s is a conflict, whose delivery is not known', async (_, changes) => {
  decode = (payload) => payload;
  const message = expect.stringContaining(
    'This message was not sent unless an earlier run with this ID sent it.',
  );
  for (const state of ['completed', 'running'] as const)
    expect(await fetchOutcome(clientOf(state, changes), REFERENCE)).toMatchObject({
      outcome: { outcome: 'conflict', delivery: null, evidence: null, prLink: null, message },
    });
});

// Proves B5.
it('while the codec fails, a batch waits for the item, and followUpResult fails with an error that Temporal retries', async () => {
  const client = clientOf();
  const context = { client, info: { attempt: 1 } } as unknown as Context;
  jest.spyOn(Context, 'current').mockReturnValue(context);
  const store = new BatchItemStore(client, {} as ItemsSource, EMPTY_BOARD);
  jest.spyOn(store, 'identify').mockResolvedValue(REFERENCE);
  jest.spyOn(store, 'recordBoard').mockResolvedValue(() => 0);
  const memo = { stopReason: null, retryScope: null } as BatchMemo;
  const fact = () => store.getFact(EMPTY_BOARD, memo, { next: 0, end: 1, state: 'running' }, new Set());
  const expected = unreadable('the keys are throttled');
  expect(await fact()).toMatchObject({ kind: 'unreadable', reason: expected.message });
  const retried = { nonRetryable: false, nextRetryDelay: 2_000, message: expected.message };
  await expect(followUpResult(REFERENCE)).rejects.toMatchObject(retried);
  decode = (payload) => payload;
  const times = { startedAt: expect.any(Number), closedAt: expect.any(Number) };
  expect(await fact()).toMatchObject({ kind: 'ended', outcome: { outcome: 'completed' }, ...times });
  expect(await followUpResult(REFERENCE)).toMatchObject({ status: 'completed' });
});

it('BatchResultReader returns an item as unreadable only after its batch has ended', async () => {
  const client = clientOf();
  decode = (payload) => (String(payload.data).includes('items') ? payload : failToDecode());
  const data = Buffer.from(JSON.stringify({ items: [REQUEST] }));
  const input = { payloads: [{ metadata: { encoding: Buffer.from('json/plain') }, data }] };
  const events = [{ workflowExecutionStartedEventAttributes: { input } }];
  // The server of `clientOf` has no batch, so the test adds the batch's history.
  const history = { value: () => Promise.resolve({ history: { events } }) };
  const service = Object.create(client.workflowService, { getWorkflowExecutionHistory: history }) as never;
  jest.replaceProperty(client.connection, 'workflowService', service);
  const report = {
    ...{ workflowId: 'follow-up-batch:b', runId: 'run', batchId: 'b', startedAt: 0 },
    memo: { ...EMPTY_BOARD, startLimit: 1, cursor: 1 },
  } as unknown as BatchDescription;
  const readNew = async (endedAt: string | null) =>
    new BatchResultReader(client).readNew({ ...report, endedAt });
  expect(await readNew(null)).toEqual([]);
  expect(await readNew('2026-11-21T04:00:00Z')).toMatchObject([unreadable('the keys are throttled')]);
});
