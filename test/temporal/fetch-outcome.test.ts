import { beforeEach, expect, it, jest } from '@jest/globals';
import { Context } from '@temporalio/activity';
import { Client } from '@temporalio/client';
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import { BatchItemStore } from '../../src/activities/batch/batch-item-store';
import { followUpResult } from '../../src/activities/follow-up-result';
import { BatchResultReader, type BatchReport } from '../../src/client/batch/describe';
import { EMPTY_BOARD } from '../../src/batch/board';
import type { BatchMemo } from '../../src/batch/memo';
import { sha256Hex } from '../../src/contract/ids';
import { MEMO_PROMPT_DIGEST } from '../../src/contract/names';
import type { ItemsSource } from '../../src/temporal/batch-items';
import { fetchOutcome } from '../../src/temporal/fetch-outcome';
import { msNumberToTs } from '@temporalio/common/lib/time';
import { JOB, RECEIPT } from '../harness/fixtures';

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'Hello', requestId: 'r' };
const MEANT = { workflowId: 'follow-up:p:j:r', promptDigest: sha256Hex('Hello') };

/** How the codec decodes what a follow-up has left. */
let decode: (payload: Payload) => Payload;
const fails = () => {
  throw new Error('the keys are throttled');
};
beforeEach(() => {
  decode = fails;
  jest.restoreAllMocks();
});

const payloads = (value: unknown) => ({ payloads: [defaultPayloadConverter.toPayload(value)] });

/** The connection to a Temporal server that has one follow-up. */
function connectionTo(state: 'completed' | 'running') {
  const [closeTime] = state === 'completed' ? [msNumberToTs(1_000)] : [];
  const info = {
    execution: { workflowId: MEANT.workflowId, runId: 'run' },
    type: { name: 'followUp' },
    startTime: msNumberToTs(0),
    ...(closeTime && { closeTime }),
    historyLength: { toNumber: () => 2 },
    status: state === 'completed' ? 2 : 1,
    memo: { fields: { [MEMO_PROMPT_DIGEST]: defaultPayloadConverter.toPayload(MEANT.promptDigest) } },
  };
  const result = payloads({ ...JOB, status: 'completed', receipt: RECEIPT });
  const events = [{ workflowExecutionCompletedEventAttributes: { result } }];
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

/** A client with a codec, of a server that has one follow-up. */
function clientOf(state: 'completed' | 'running' = 'completed'): Client {
  const codec = {
    encode: (payloads: Payload[]) => Promise.resolve(payloads),
    // eslint-disable-next-line @typescript-eslint/require-await -- what it throws is a rejection
    decode: async (payloads: Payload[]) => payloads.map((payload) => decode(payload)),
  };
  const connection = connectionTo(state) as never;
  return new Client({ connection, namespace: 'in-memory', dataConverter: { payloadCodecs: [codec] } });
}

const broken = (why: string) => ({ outcome: 'unreadable', message: expect.stringContaining(why) });

it('a follow-up that can’t be decoded while it runs has not ended; an encoding that the converter does not know stays one', async () => {
  const { outcome, unreadableOutcome } = await fetchOutcome(clientOf('running'), MEANT);
  expect([outcome, unreadableOutcome]).toEqual([null, undefined]);
  decode = (payload) => ({ ...payload, metadata: { encoding: Buffer.from('binary/encrypted') } });
  const unknown = broken('Unknown encoding: binary/encrypted');
  for (const state of ['completed', 'running'] as const)
    expect(await fetchOutcome(clientOf(state), MEANT)).toMatchObject({ outcome: unknown });
});

// Proves B5.
it('a batch waits for an item while its codec fails, and a caller gets an error that Temporal retries', async () => {
  const client = clientOf();
  const context = { client, info: { attempt: 1 } } as unknown as Context;
  jest.spyOn(Context, 'current').mockReturnValue(context);
  const server = new BatchItemStore(client, {} as ItemsSource, EMPTY_BOARD);
  jest.spyOn(server, 'identify').mockResolvedValue(MEANT);
  jest.spyOn(server, 'recordBoard').mockResolvedValue(() => 0);
  const memo = { stopReason: null, retryScope: null } as BatchMemo;
  const fact = () => server.getFact(EMPTY_BOARD, memo, { next: 0, end: 1, state: 'running' }, new Set());
  const trouble = broken('the keys are throttled');
  expect(await fact()).toMatchObject({ kind: 'unreadable', reason: trouble.message });
  const retried = { nonRetryable: false, nextRetryDelay: 2_000, message: trouble.message };
  await expect(followUpResult(MEANT)).rejects.toMatchObject(retried);
  decode = (payload) => payload;
  const times = { startedAt: expect.any(Number), closedAt: expect.any(Number) };
  expect(await fact()).toMatchObject({ kind: 'ended', outcome: { outcome: 'completed' }, ...times });
  expect(await followUpResult(MEANT)).toMatchObject({ status: 'completed' });
});

it('the client tells an item that it can’t decode once its batch has ended', async () => {
  const client = clientOf();
  decode = (payload) => (String(payload.data).includes('items') ? payload : fails());
  const data = Buffer.from(JSON.stringify({ items: [REQUEST] }));
  const input = { payloads: [{ metadata: { encoding: Buffer.from('json/plain') }, data }] };
  const events = [{ workflowExecutionStartedEventAttributes: { input } }];
  // Of the batch, which this server does not have.
  const history = { value: () => Promise.resolve({ history: { events } }) };
  const service = Object.create(client.workflowService, { getWorkflowExecutionHistory: history }) as never;
  jest.replaceProperty(client.connection, 'workflowService', service);
  const report = {
    ...{ workflowId: 'follow-up-batch:b', runId: 'run', batchId: 'b', startedAt: 0 },
    memo: { ...EMPTY_BOARD, startLimit: 1, cursor: 1 },
  } as unknown as BatchReport;
  const told = async (endedAt: string | null) =>
    new BatchResultReader(client).readNew({ ...report, endedAt });
  expect(await told(null)).toEqual([]);
  expect(await told('2026-11-21T04:00:00Z')).toMatchObject([broken('the keys are throttled')]);
});
