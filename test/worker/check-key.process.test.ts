import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, expect, it } from '@jest/globals';
import { ProcessEnvironment } from '../harness/process-environment';
import { JOB } from '../agent-api/agent-api-under-test';
import { temporaryFolder } from '../harness/temporary-folder';
import { ConnectProxy } from '../agent-api/connect-proxy';
import { answer, MisbehavingServer } from '../agent-api/misbehaving-server';
import { selfSignedCertificate } from '../agent-api/self-signed-certificate';

const WRONG_KEY = 'agnt_0000000000000000';

const folder = temporaryFolder();
const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

it('a worker reads by HTTPS_PROXY, and trusts NODE_EXTRA_CA_CERTS', () =>
  ProcessEnvironment.with({}, async (environment) => {
    const certificate = selfSignedCertificate();
    const ca = path.join(folder, 'ca.pem');
    await writeFile(ca, certificate.cert);
    const [server, proxy] = [await MisbehavingServer.start(certificate), await ConnectProxy.start()];
    cleanUps.push(
      () => server.stop(),
      () => proxy.stop(),
    );
    server.onRequest = answer(200, JOB);
    const worker = await environment.startWorker({
      ...{ AGENT_API_BASE_URL: server.url, HTTPS_PROXY: proxy.url, NODE_EXTRA_CA_CERTS: ca },
    });
    expect(await worker.answersReadyz(200)).toEqual([]);
    expect(proxy.asked).toEqual([`CONNECT 127.0.0.1:${server.port}`]);
  }));

it('the readiness of a worker tells a wrong key before the first follow-up, in the log too, and asks the service once', () =>
  ProcessEnvironment.with({}, async (environment) => {
    const worker = await environment.startWorker({ AGENT_API_KEY: WRONG_KEY });
    const reason =
      /^the agent service can't be used with these settings: http 401: the key is expired or wrong/;
    expect(await worker.says(reason)).toMatchObject({ level: 'warn' });
    const check = { projectId: 'agent-follow-up-check' };
    const { journal } = environment.sandbox;
    const asked = journal.entries(check).length;
    expect(await worker.answersReadyz(503)).toEqual([expect.stringMatching(reason)]);
    expect(journal.entries(check)).toHaveLength(asked);
  }));
