import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Context } from '@temporalio/activity';
import { Client } from '@temporalio/client';
import type { Payload } from '@temporalio/common';
import { BatchOnServer } from '../../src/activities/batch/on-server';
import { followUpResult } from '../../src/activities/follow-up-result';
import { BatchEnds, type BatchReport } from '../../src/client/batch/describe';
import type { Fate } from '../../src/client/in-memory-run';
import { InMemoryFollowUpClient } from '../../src/client/testing';
import { START } from '../../src/core/batch/state';
import { digestOf } from '../../src/core/ids';
import type { ItemsOfBatch, ItemsSource } from '../../src/temporal/batch-items';
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
});
afterEach(() => {
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

it('an end that a codec can’t decode is asked for again, and is not lost', async () => {
  const client = await clientOf();
  const found = await findEnd(client, MEANT);
  expect(found).toMatchObject({ end: null, trouble: broken('the keys are throttled') });
  expect(found.closedAt).toBeDefined();
  decode = (payload) => payload;
  expect((await findEnd(client, MEANT)).end).toMatchObject({ outcome: 'completed' });
});

it('a follow-up that can’t be decoded while it runs has not ended', async () => {
  const { end, trouble } = await findEnd(await clientOf({ phase: 'watching' }), MEANT);
  expect([end, trouble]).toEqual([null, undefined]);
});

it('an encoding that the converter does not know stays one, also while the follow-up runs', async () => {
  decode = (payload) => ({ ...payload, metadata: { encoding: Buffer.from('binary/encrypted') } });
  const end = broken('Unknown encoding: binary/encrypted');
  for (const fate of [{}, { phase: 'watching' }] as const)
    expect(await findEnd(await clientOf(fate), MEANT)).toMatchObject({ end });
});

function attempt(client: Client): void {
  jest.spyOn(Context, 'current').mockReturnValue({ client, info: { attempt: 1 } } as unknown as Context);
}

it('a parent waits while the end of its follow-up can’t be decoded', async () => {
  const client = await clientOf();
  attempt(client);
  const asksAgain = { nextRetryDelay: 2_000, message: expect.stringContaining('the keys are throttled') };
  await expect(followUpResult(MEANT)).rejects.toMatchObject({ nonRetryable: false, ...asksAgain });
  decode = (payload) => payload;
  expect(await followUpResult(MEANT)).toMatchObject({ status: 'completed' });
});

// Proves B5.
it('an item of a batch whose end can’t be decoded holds its place for ten minutes, and is broken then', async () => {
  const client = await clientOf();
  const items = { named: () => Promise.resolve(MEANT) } as unknown as ItemsOfBatch;
  const server = new BatchOnServer(client, {} as ItemsSource, items, () => Promise.resolve());
  const now = jest.spyOn(performance, 'now');
  for (const [minute, end] of [
    [0, null] as const,
    [9, null] as const,
    [11, broken('are throttled')] as const,
  ]) {
    now.mockReturnValue(minute * MINUTE_MS);
    expect(await server.ask(0)).toMatchObject({ end });
  }
  attempt(client);
  await expect(followUpResult(MEANT)).rejects.toMatchObject({ type: 'FollowUpBroken', nonRetryable: true });
});

it('an end that could be decoded between two failures is not broken', async () => {
  const client = await clientOf();
  const now = jest.spyOn(performance, 'now').mockReturnValue(0);
  expect((await findEnd(client, MEANT)).end).toBeNull();
  decode = (payload) => payload;
  expect((await findEnd(client, MEANT)).end).toMatchObject({ outcome: 'completed' });
  decode = fails;
  now.mockReturnValue(20 * MINUTE_MS);
  expect((await findEnd(client, MEANT)).end).toBeNull();
});

it('the client tells an item that it can’t decode once its batch has ended', async () => {
  const client = await clientOf();
  const workflowService = Object.create(client.workflowService, {
    // Of the batch, which this server does not have.
    getWorkflowExecutionHistory: {
      value: () => {
        const data = Buffer.from(JSON.stringify({ items: [REQUEST] }));
        const input = { payloads: [{ metadata: { encoding: Buffer.from('json/plain') }, data }] };
        return Promise.resolve({
          history: { events: [{ workflowExecutionStartedEventAttributes: { input } }] },
        });
      },
    },
  }) as object;
  const connection = { ...client.connection, workflowService } as unknown as typeof client.connection;
  const { dataConverter } = client.options;
  const own = new Client({ connection, namespace: 'in-memory', dataConverter });
  decode = (payload) => (String(payload.data).includes('items') ? payload : fails());
  const report = {
    ...{ workflowId: 'follow-up-batch:b', runId: 'run', batchId: 'b', startedAt: '2026-11-21T03:00:00Z' },
    memo: { ...START, bound: 1, cursor: 1, begun: null, movingSince: null },
  } as unknown as BatchReport;
  const told = async (endedAt: string | null) => new BatchEnds(own).news({ ...report, endedAt });
  expect(await told(null)).toEqual([]);
  expect(await told('2026-11-21T04:00:00Z')).toMatchObject([broken('the keys are throttled')]);
});
