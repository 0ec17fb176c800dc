import path from 'node:path';
import { expect, it } from '@jest/globals';
import { ProcessEnvironment } from '../harness/process-environment';
import { Program } from '../harness/program';
import { ROOT } from '../harness/worker-process';

const WRONG_KEY = 'agnt_0000000000000000';
const WORDS = 'http 401: the key is expired or wrong';

it('the readiness of a worker tells a wrong key before the first follow-up, in the log too, and asks the service once', () =>
  ProcessEnvironment.with({}, async (environment) => {
    const worker = await environment.startWorker({ AGENT_API_KEY: WRONG_KEY });
    const reason = new RegExp(`^the agent service can't be used with these settings: ${WORDS}`);
    expect(await worker.says(reason)).toMatchObject({ level: 'warn' });
    const check = { projectId: 'agent-follow-up-check' };
    const { journal } = environment.sandbox;
    const asked = journal.entries(check).length;
    expect(await worker.answersReadyz(503)).toEqual([expect.stringMatching(reason)]);
    expect(journal.entries(check)).toHaveLength(asked);
  }));

it('worker.js --check-key tells whether the service takes the key, by its exit code too', () =>
  ProcessEnvironment.with({}, async ({ sandbox }) => {
    const args = [path.join(ROOT, 'dist/worker.js'), '--check-key', '--project', 'docs', '--job', 'job-1'];
    const ended = (key: string) =>
      new Program(process.execPath, args, {
        env: { PATH: process.env.PATH, AGENT_API_BASE_URL: sandbox.baseUrl, AGENT_API_KEY: key },
      }).ended();
    expect(await ended(WRONG_KEY)).toMatchObject({ code: 1, stdout: expect.stringContaining(WORDS) });
    expect(await ended(sandbox.apiKey)).toMatchObject({ code: 0 });
  }));
