import { describe, expect, it, jest } from '@jest/globals';
import { JOB, WireTest } from './agent-api-under-test';
import { answer } from './misbehaving-server';
import { sendAndRead } from './over-tls';
import { selfSignedCertificate } from './self-signed-certificate';

// Each test starts a process that compiles its program: a second, or ten on a machine with much else to do.
jest.setTimeout(30_000);

describe('over TLS, with a certificate that NODE_EXTRA_CA_CERTS makes trusted', () => {
  const wire = new WireTest();
  const certificate = selfSignedCertificate();

  it('the message arrives and the job is read', async () => {
    const server = await wire.anotherServer(certificate);
    server.onRequest = answer(200, JOB);
    const read = { kind: 'job', job: JOB };
    expect(await sendAndRead({ baseUrl: server.url }, certificate)).toEqual({
      outcome: { verdict: 'accepted', job: JOB },
      reads: [read, read],
    });
    expect(server.requests.map(({ method }) => method)).toEqual(['POST', 'GET', 'GET']);
  });

  it('an address that the trusted certificate does not name keeps the message from being sent', async () => {
    const ofAnother = selfSignedCertificate([192, 0, 2, 1]);
    const server = await wire.anotherServer(ofAnother);
    server.onRequest = answer(200, JOB);
    const why = {
      label: 'ERR_TLS_CERT_ALTNAME_INVALID',
      message: expect.stringMatching(/; check the host of the URL$/),
    };
    expect(await sendAndRead({ baseUrl: server.url }, ofAnother)).toMatchObject({
      outcome: { verdict: 'not-sent', repeatable: true, ...why },
      reads: [
        { kind: 'trouble', ...why },
        { kind: 'trouble', ...why },
      ],
    });
    expect(server.requests).toHaveLength(0);
  });

  it('a refusal after the handshake leaves the delivery unknown', async () => {
    const server = await wire.anotherServer({ ...certificate, requestCert: true });
    server.onRequest = answer(200, JOB);
    // TLS 1.3 tells the client of a certificate it lacks only after the client may have begun to write.
    expect(await sendAndRead({ baseUrl: server.url }, certificate)).toMatchObject({
      outcome: { verdict: 'unknown' },
    });
    expect(server.requests).toHaveLength(0);
  });
});
