import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { JOB, WireTest } from './agent-api-under-test';
import { answer } from './misbehaving-server';
import { selfSignedCertificate } from './self-signed-certificate';

// Each test starts a process that compiles its program: a second, or ten on a machine with much else to do.
jest.setTimeout(30_000);

describe('over TLS, with a certificate that NODE_EXTRA_CA_CERTS makes trusted', () => {
  const wire = new WireTest();
  const certificate = selfSignedCertificate();
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'agent-tls-'));
    await writeFile(join(folder, 'ca.pem'), certificate.cert);
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function sendAndRead(baseUrl: string): Promise<unknown> {
    const program = join(__dirname, 'send-over-tls.ts');
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', program, baseUrl], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') },
      timeout: 30_000,
    });
    return JSON.parse(stdout);
  }

  it('the message arrives and the job is read', async () => {
    const server = await wire.anotherServer(certificate);
    server.onRequest = answer(200, JOB);
    expect(await sendAndRead(server.url)).toEqual({
      outcome: { verdict: 'accepted', job: JOB },
      read: { kind: 'job', job: JOB },
    });
    expect(server.requests.map(({ method }) => method)).toEqual(['POST', 'GET']);
  });

  it('an address that the trusted certificate does not name keeps the message from being sent', async () => {
    const ofAnother = selfSignedCertificate([192, 0, 2, 1]);
    await writeFile(join(folder, 'ca.pem'), ofAnother.cert);
    const server = await wire.anotherServer(ofAnother);
    server.onRequest = answer(200, JOB);
    const label = 'ERR_TLS_CERT_ALTNAME_INVALID';
    expect(await sendAndRead(server.url)).toMatchObject({
      outcome: { verdict: 'not-sent', repeatable: true, label },
      read: { kind: 'trouble', label },
    });
    expect(server.requests).toHaveLength(0);
  });

  it('a refusal after the handshake leaves the delivery unknown', async () => {
    const server = await wire.anotherServer({ ...certificate, requestCert: true });
    server.onRequest = answer(200, JOB);
    // TLS 1.3 tells the client of a certificate it lacks only after the client may have begun to write.
    expect(await sendAndRead(server.url)).toMatchObject({ outcome: { verdict: 'unknown' } });
    expect(server.requests).toHaveLength(0);
  });
});
