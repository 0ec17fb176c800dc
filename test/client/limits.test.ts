import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { FollowUpClient, InvalidRequestError, type Limits } from '../../src/client';
import { fairnessKey } from '../../src/core/ids';
import { eventually } from '../harness/eventually';
import { temporal } from '../harness/temporal';

let connection: Connection;

beforeAll(async () => {
  connection = await Connection.connect({ address: temporal().address });
});
afterAll(() => connection.close());

/** A client for task queues of its own, which no worker polls: limits are the server's. */
function followUps(namespace = temporal().namespace): FollowUpClient {
  const name = randomUUID().slice(0, 8);
  const client = new Client({ connection, namespace });
  return new FollowUpClient(client, { readTaskQueue: `read-${name}`, sendTaskQueue: `send-${name}` });
}

/** What the queue's other partitions hear a moment later: the answer once it is as wanted. */
async function limitsWhen(client: FollowUpClient, wanted: (limits: Limits) => boolean): Promise<Limits> {
  return eventually('the limits are as wanted', () => client.limits.get(), { until: wanted });
}

describe('limits', () => {
  it('are none at first', async () => {
    const none = { total: null, perProject: null, weights: {}, waiting: 0, oldestMs: 0 };
    expect(await followUps().limits.get()).toMatchObject({ sends: none, reads: none });
  });

  it('are kept by the server and shared by all clients', async () => {
    const client = followUps();
    await client.limits.set({ sendsPerProject: '90/h', readsTotal: '50/s' });

    const { sends, reads } = await limitsWhen(client, (limits) => limits.reads.total !== null);
    expect(sends).toMatchObject({ total: null, perProject: { rate: '90/h', perSecond: 0.025 } });
    expect(reads).toMatchObject({ total: { rate: '50/s', perSecond: 50 }, perProject: null });
  });

  it('are answered as they hold right after they were set', async () => {
    const { sends } = await followUps().limits.set({ sendsTotal: '300/h' });

    expect(sends.total?.rate).toBe('300/h');
  });

  it('change one by one: what is left out stays, off removes', async () => {
    const client = followUps();
    await client.limits.set({
      sendsPerProject: '90/h',
      sendsTotal: '300/h',
      projectWeights: { docs: 3, site: 2 },
    });

    const { sends, reads } = await client.limits.set({
      sendsPerProject: 'off',
      projectWeights: { site: 'off' },
    });

    expect(sends).toMatchObject({ total: { rate: '300/h' }, perProject: null, weights: { docs: 3 } });
    expect(reads).toMatchObject({ total: null, perProject: null, weights: { docs: 3 } });
    expect(Object.keys(sends.weights)).toEqual(['docs']);
  });

  it('keep the weight of a project whose id is too long for a fairness key', async () => {
    const projectId = 'p'.repeat(128);

    const { sends } = await followUps().limits.set({ projectWeights: { [projectId]: 0.5 } });

    expect(sends.weights).toEqual({ [fairnessKey(projectId)]: 0.5 });
  });

  it('are all gone after they were cleared', async () => {
    const client = followUps();
    await client.limits.set({
      ...{ sendsPerProject: '90/h', sendsTotal: '1/s', readsPerProject: '5/s', readsTotal: '50/s' },
      projectWeights: { docs: 3, site: 0.5 },
    });

    const cleared = await client.limits.clear();

    const none = { total: null, perProject: null, weights: {} };
    expect(cleared).toMatchObject({ sends: none, reads: none });
    expect(Object.keys(cleared.sends.weights)).toEqual([]);
    expect(await client.limits.clear()).toMatchObject({ sends: none, reads: none });
  });

  it('are left as they are by a change with a mistake', async () => {
    const client = followUps();

    const change = client.limits.set({ sendsTotal: '5/s', readsTotal: '0/s' });

    await expect(change).rejects.toThrow(InvalidRequestError);
    expect((await client.limits.get()).sends.total).toBeNull();
  });

  it('that the server refuses are an error with its words', async () => {
    const projectWeights = Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [`p${i}`, 2]));

    const change = followUps().limits.set({ projectWeights });

    await expect(change).rejects.toMatchObject({ code: 'LIMITS_UNAVAILABLE' });
    await expect(change).rejects.toThrow(/can't be set: too many fairness weight overrides/);
  });
});

describe('a server without limits of task queues', () => {
  it.each([
    ['to set', (client: FollowUpClient) => client.limits.set({ sendsTotal: '5/s' })],
    ['to tell', (client: FollowUpClient) => client.limits.get()],
  ])('is an error that says so when there are limits %s', async (_, ask) => {
    const server = await oldServer();
    const client = new FollowUpClient(new Client({ connection: server.connection }));
    try {
      await expect(ask(client)).rejects.toMatchObject({ code: 'LIMITS_UNAVAILABLE' });
      await expect(ask(client)).rejects.toThrow(/no limits of task queues.*Update the server/);
    } finally {
      await server.close();
    }
  });
});

/** A gRPC server that knows no method at all, as one from before 2025 does not know that of limits. */
async function oldServer(): Promise<{ connection: Connection; close: () => Promise<void> }> {
  const server = createServer();
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream) => {
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '12', 'grpc-message': 'unknown' },
      { endStream: true },
    );
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const old = Connection.lazy({ address: `127.0.0.1:${(server.address() as AddressInfo).port}` });
  const close = async () => {
    await old.close();
    for (const session of sessions) session.destroy();
    server.close();
  };
  return { connection: old, close };
}
