import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { ProcessEnvironment } from '../harness/process-environment';
import { ROOT } from '../harness/worker-process';
import { JOB, KEY } from '../agent-api/agent-api-under-test';
import { Program } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import { answer, MisbehavingServer } from '../agent-api/misbehaving-server';
import { selfSignedCertificate } from '../agent-api/self-signed-certificate';

const WRONG_KEY = 'agnt_0000000000000000';

const folder = temporaryFolder();

it('worker.js --check-key uses HTTPS_PROXY and NODE_EXTRA_CA_CERTS, as the worker does', async () => {
  const certificate = selfSignedCertificate();
  await writeFile(path.join(folder, 'ca.pem'), certificate.cert);
  const [server, proxy] = [await MisbehavingServer.start(certificate), await MisbehavingServer.start()];
  server.onRequest = answer(200, JOB);
  const args = [path.join(ROOT, 'dist/worker.js'), '--check-key', '--project', 'docs', '--job', 'job-1'];
  const env = {
    ...{ PATH: process.env.PATH, AGENT_API_BASE_URL: server.url, AGENT_API_KEY: KEY },
    ...{ HTTPS_PROXY: proxy.url, NODE_EXTRA_CA_CERTS: path.join(folder, 'ca.pem') },
  };
  expect(await new Program(process.execPath, args, { env }).ended()).toMatchObject({ code: 0 });
  expect(proxy.requests).toMatchObject([{ method: 'CONNECT', path: server.host }]);
});

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
