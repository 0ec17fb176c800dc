import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { ADDRESS, expectNoKey, JOB, MESSAGE, SHORT_MS, SOON_MS, WireTest } from './agent-api-under-test';
import { answer, refusedPort } from './misbehaving-server';
import { selfSignedCertificate } from './self-signed-certificate';
import { stoppedListener } from './stopped-listener';

/** Before the first byte of the request: nothing can have been sent, whatever went wrong. */
describe('a POST that got no connection was not sent', () => {
  const wire = new WireTest();
  const cleanUps: (() => Promise<void>)[] = [];
  afterEach(() => Promise.all(cleanUps.splice(0).map((cleanUp) => cleanUp())));

  async function sendAndRead(baseUrl: string, timeoutMs = 5_000) {
    const client = wire.client({ baseUrl, timeoutMs });
    const beforeFirstByte = jest.fn(() => undefined);
    const [outcome, read] = [
      await client.sendMessage(MESSAGE, { beforeFirstByte }),
      await client.getJob(ADDRESS),
    ];
    expectNoKey([outcome, read]);
    expect(beforeFirstByte).not.toHaveBeenCalled();
    expect(outcome).toMatchObject({ verdict: 'not-sent', repeatable: true, answered: false });
    const { label, message } = outcome as { label: string; message: string };
    expect(read).toMatchObject({ kind: 'trouble', label });
    return { label, message };
  }

  it('when the port refuses it', async () => {
    const port = await refusedPort();
    expect(await sendAndRead(`http://127.0.0.1:${port}`)).toEqual({
      label: 'ECONNREFUSED',
      message: `ECONNREFUSED 127.0.0.1:${port}`,
    });
  });

  it('when every address of the host refuses it', async () => {
    const port = await refusedPort();
    const { label, message } = await sendAndRead(`http://localhost:${port}`);
    expect(label).toBe('ECONNREFUSED');
    // `localhost` has one address or two, as the machine is set up.
    expect(message).toMatch(new RegExp(`^(ECONNREFUSED (\\[::1\\]|127\\.0\\.0\\.1):${port}(, )?){1,2}$`));
  });

  it('when nobody knows the host', async () => {
    const { label, message } = await sendAndRead('http://agent-service.invalid');
    // Without a network the resolver can only say "try again".
    expect(label).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/);
    expect(message).toBe(`${label} agent-service.invalid`);
  });

  it('when the host takes no connection in a third of the time limit', async () => {
    const { port, stop } = await stoppedListener();
    cleanUps.push(stop);
    const startedAt = performance.now();
    expect(await sendAndRead(`http://127.0.0.1:${port}`, 900)).toEqual({
      label: 'connect timeout',
      message: `connect timeout: no connection to 127.0.0.1:${port} within 300ms`,
    });
    expect(performance.now() - startedAt).toBeLessThan(SOON_MS);
  });

  it('when the TLS handshake is never answered', async () => {
    wire.server.onConnection = () => true;
    expect(await sendAndRead(`https://127.0.0.1:${wire.server.port}`, SHORT_MS)).toMatchObject({
      label: 'connect timeout',
    });
    expect(wire.server.requests).toHaveLength(0);
  });

  it('when the TLS handshake is reset', async () => {
    wire.server.onConnection = (socket) => {
      socket.once('data', () => socket.resetAndDestroy());
      return true;
    };
    expect(await sendAndRead(`https://127.0.0.1:${wire.server.port}`)).toMatchObject({ label: 'ECONNRESET' });
    expect(wire.server.connections).toBe(2);
  });

  it('when the server speaks no TLS', async () => {
    wire.server.onConnection = (socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
      return true;
    };
    expect(await sendAndRead(`https://127.0.0.1:${wire.server.port}`)).toMatchObject({
      label: expect.stringMatching(/^(ERR_SSL_|EPROTO)/),
    });
  });

  it('when the certificate is not trusted', async () => {
    const server = await wire.anotherServer(selfSignedCertificate());
    server.onRequest = answer(200, JOB);
    expect(await sendAndRead(server.url)).toEqual({
      label: 'DEPTH_ZERO_SELF_SIGNED_CERT',
      // Node 24 adds a hint to the words.
      message: expect.stringMatching(
        /^DEPTH_ZERO_SELF_SIGNED_CERT: self-signed certificate.*; for a private authority, start the worker with NODE_EXTRA_CA_CERTS/,
      ),
    });
    expect(server.connections).toBe(2);
    expect(server.requests).toHaveLength(0);
    expect(server.bytesReceived).toBe(0);
  });
});

describe('beforeFirstByte', () => {
  const wire = new WireTest();

  it('is asked once the connection is made, and lets the request through', async () => {
    wire.server.onRequest = answer(200, JOB);
    const beforeFirstByte = jest.fn(() => undefined);
    expect(await wire.client().sendMessage(MESSAGE, { beforeFirstByte })).toMatchObject({
      verdict: 'accepted',
    });
    expect(beforeFirstByte).toHaveBeenCalledTimes(1);
  });

  it('keeps every byte from the service by its reason, and the connection is destroyed', async () => {
    const outcome = await wire.client().sendMessage(MESSAGE, {
      beforeFirstByte: () => 'the worker stood still while it was connecting',
    });
    expect(outcome).toEqual({
      verdict: 'not-sent',
      repeatable: true,
      answered: false,
      label: 'held back',
      message: 'the worker stood still while it was connecting',
    });
    await wire.server.allClosed();
    expect(wire.server.bytesReceived).toBe(0);
  });

  it('keeps every byte from the service when it throws', async () => {
    const outcome = await wire.client().sendMessage(MESSAGE, {
      beforeFirstByte: () => {
        throw new Error('no clock');
      },
    });
    expect(outcome).toMatchObject({
      verdict: 'not-sent',
      repeatable: true,
      message: 'no clock',
    });
    await wire.server.allClosed();
    expect(wire.server.bytesReceived).toBe(0);
  });
});

describe('a job that no URL can name', () => {
  const wire = new WireTest();

  it.each(['', '.', '..', 'lone \ud800 surrogate'])('is not asked for and not sent to: %j', async (jobId) => {
    const client = wire.client();
    expect(await client.sendMessage({ ...MESSAGE, jobId })).toMatchObject({
      verdict: 'not-sent',
      repeatable: false,
      answered: false,
      label: 'invalid id',
    });
    expect(await client.getJob({ projectId: jobId, jobId: 'job-1' })).toMatchObject({
      kind: 'trouble',
      label: 'invalid id',
    });
    expect(wire.server.connections).toBe(0);
  });
});
