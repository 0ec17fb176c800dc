import { beforeEach, expect, it, jest } from '@jest/globals';
import { Context } from '@temporalio/activity';
import { Client } from '@temporalio/client';
import type { Payload } from '@temporalio/common';
import { ItemsOnServer } from '../../src/activities/batch/on-server';
import { followUpResult } from '../../src/activities/follow-up-result';
import { BatchEnds, type BatchReport } from '../../src/client/batch/describe';
import type { Fate } from '../../src/client/in-memory-run';
import { InMemoryFollowUpClient } from '../../src/client/testing';
import { EMPTY_BOARD } from '../../src/batch/board';
import type { BatchMemo } from '../../src/batch/memo';
import { digestOf } from '../../src/core/ids';
import type { ItemsSource } from '../../src/temporal/batch-items';
import { findEnd } from '../../src/temporal/follow-up-end';

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'Hello', requestId: 'r' };
const MEANT = { workflowId: 'follow-up:p:j:r', promptDigest: digestOf('Hello') };
const MINUTE_MS = 60_000;

/** How the codec decodes what a follow-up has left. */
let decode: (payload: Payload) => Payload;
const fails = () => {
  throw new Error('the keys are throttled');
};
beforeEach(() => {
  decode = fails;
  jest.restoreAllMocks();
});

/** A client with a codec, of a server that has one follow-up. */
async function clientOf(fate: Fate = {}): Promise<Client> {
  const followUps = new InMemoryFollowUpClient(() => fate);
  await followUps.start(REQUEST);
  const codec = {
    encode: (payloads: Payload[]) => Promise.resolve(payloads),
    // eslint-disable-next-line @typescript-eslint/require-await -- what it throws is a rejection
    decode: async (payloads: Payload[]) => payloads.map((payload) => decode(payload)),
  };
  const { connection } = followUps.client;
  return new Client({ connection, namespace: 'in-memory', dataConverter: { payloadCodecs: [codec] } });
}

const broken = (why: string) => ({ outcome: 'broken', message: expect.stringContaining(why) });

it('a follow-up that can’t be decoded while it runs has not ended; an encoding that the converter does not know stays one', async () => {
  const { end, trouble } = await findEnd(await clientOf({ phase: 'watching' }), MEANT);
  expect([end, trouble]).toEqual([null, undefined]);
  decode = (payload) => ({ ...payload, metadata: { encoding: Buffer.from('binary/encrypted') } });
  const unknown = broken('Unknown encoding: binary/encrypted');
  for (const fate of [{}, { phase: 'watching' }] as const)
    expect(await findEnd(await clientOf(fate), MEANT)).toMatchObject({ end: unknown });
});

// Proves B5.
it('an end that can’t be decoded is asked for again, by a batch and by a parent, and is broken after ten minutes without one that could', async () => {
  const client = await clientOf();
  const context = { client, info: { attempt: 1 } } as unknown as Context;
  jest.spyOn(Context, 'current').mockReturnValue(context);
  const server = new ItemsOnServer(client, {} as ItemsSource, EMPTY_BOARD);
  jest.spyOn(server, 'named').mockResolvedValue(MEANT);
  jest.spyOn(server, 'record').mockResolvedValue(() => 0);
  const memo = { ending: null, again: null } as BatchMemo;
  const lane = { next: 0, end: 1, state: 'running' } as const;
  const now = jest.spyOn(performance, 'now');
  const at = (minute: number) => {
    now.mockReturnValue(minute * MINUTE_MS);
    return server.fact(EMPTY_BOARD, memo, lane, new Set());
  };
  const trouble = broken('the keys are throttled');
  const waits = { kind: 'unreadable', reason: trouble.message };
  expect(await at(0)).toMatchObject(waits);
  expect(await at(9)).toMatchObject(waits);
  const asksAgain = { nonRetryable: false, nextRetryDelay: 2_000, message: trouble.message };
  await expect(followUpResult(MEANT)).rejects.toMatchObject(asksAgain);
  decode = (payload) => payload;
  const times = { startedAt: expect.any(Number), closedAt: expect.any(Number) };
  expect(await at(9)).toMatchObject({ kind: 'ended', outcome: { outcome: 'completed' }, ...times });
  expect(await followUpResult(MEANT)).toMatchObject({ status: 'completed' });
  decode = fails;
  expect(await at(20)).toMatchObject(waits);
  expect(await at(29)).toMatchObject(waits);
  expect(await at(31)).toMatchObject({ kind: 'ended', outcome: trouble });
  await expect(followUpResult(MEANT)).rejects.toMatchObject({ type: 'FollowUpBroken', nonRetryable: true });
});

it('the client tells an item that it can’t decode once its batch has ended', async () => {
  const client = await clientOf();
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
    memo: { ...EMPTY_BOARD, bound: 1, cursor: 1 },
  } as unknown as BatchReport;
  const told = async (endedAt: string | null) => new BatchEnds(client).news({ ...report, endedAt });
  expect(await told(null)).toEqual([]);
  expect(await told('2026-11-21T04:00:00Z')).toMatchObject([broken('the keys are throttled')]);
});
