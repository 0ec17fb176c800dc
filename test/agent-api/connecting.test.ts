import { createServer, type Socket } from 'node:net';
import { describe, expect, it, jest } from '@jest/globals';
import { freePorts } from '../../dev/free-ports';
import { holdTimers } from '../harness/hold-timers';
import { listening } from '../temporal/grpc-server';
import { ADDRESS, expectNoKey, MESSAGE, outOfTime, WireTest } from './agent-api-under-test';
import { MisbehavingServer } from './misbehaving-server';
import { selfSignedCertificate } from './self-signed-certificate';

const wire = new WireTest();

/** Before the first byte of the request: nothing can have been sent, whatever went wrong. */
describe('a POST that got no connection was not sent', () => {
  async function sendAndRead(baseUrl: string) {
    const client = wire.client({ baseUrl });
    const beforeFirstByte = jest.fn(() => undefined);
    const outcome = await client.sendMessage(MESSAGE, { beforeFirstByte });
    const read = await client.getJob(ADDRESS);
    expectNoKey([outcome, read]);
    expect(beforeFirstByte).not.toHaveBeenCalled();
    expect(outcome).toMatchObject({ verdict: 'not-sent', repeatable: true, answered: false });
    const { label, message } = outcome as { label: string; message: string };
    expect(read).toMatchObject({ kind: 'trouble', label });
    return { label, message };
  }

  // Proves A3.
  it('when the port refuses it, or nobody knows the host', async () => {
    const [port = 0] = await freePorts(1);
    const message = `ECONNREFUSED 127.0.0.1:${port}`;
    expect(await sendAndRead(`http://127.0.0.1:${port}`)).toEqual({ label: 'ECONNREFUSED', message });
    const unknown = await sendAndRead('http://agent-service.invalid');
    // Without a network the resolver can only say "try again".
    expect(unknown.label).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/);
    expect(unknown.message).toBe(`${unknown.label} agent-service.invalid`);
  });

  it.each<[string, (socket: Socket) => unknown, string]>([
    ['reset', (socket) => socket.once('data', () => socket.resetAndDestroy()), 'ECONNRESET'],
    ['never answered', outOfTime, 'connect timeout'],
  ])('when the TLS handshake is %s', async (_how, onConnection, label) => {
    holdTimers();
    const server = createServer((socket) => onConnection(socket.on('error', () => undefined)));
    expect((await sendAndRead(`https://${await listening(server)}`)).label).toBe(label);
  });

  // Proves A3.
  it('when the certificate is not trusted', async () => {
    const server = await MisbehavingServer.start(selfSignedCertificate());
    // Node 24 adds a hint to the words.
    expect((await sendAndRead(server.url)).message).toMatch(
      /^DEPTH_ZERO_SELF_SIGNED_CERT: self-signed certificate.*; for a private authority, start the worker with NODE_EXTRA_CA_CERTS/,
    );
    expect([server.connections, server.requests.length]).toEqual([2, 0]);
  });
});

// Proves W4.
it('a POST is kept back, every byte of it, by what stands against it at its first byte', async () => {
  const message = 'the worker stood still while it was connecting';
  const outcome = await wire.client().sendMessage(MESSAGE, { beforeFirstByte: () => message });
  const notSent = { verdict: 'not-sent', repeatable: true, answered: false };
  expect(outcome).toEqual({ ...notSent, label: 'held back', message });
  await wire.server.allClosed();
  expect([wire.server.connections, wire.server.bytesReceived]).toEqual([1, 0]);
});

it('a job that no URL can name is not asked for and not sent to', async () => {
  const client = wire.client();
  for (const jobId of ['', '.', '..', 'lone \ud800 surrogate']) {
    const notSent = { verdict: 'not-sent', repeatable: false, answered: false, label: 'invalid id' };
    expect(await client.sendMessage({ ...MESSAGE, jobId })).toMatchObject(notSent);
    const trouble = { kind: 'trouble', label: 'invalid id' };
    expect(await client.getJob({ projectId: jobId, jobId: 'job-1' })).toMatchObject(trouble);
  }
  expect(wire.server.connections).toBe(0);
});
