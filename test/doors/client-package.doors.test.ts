import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { dependencies, devDependencies } from '../../package.json';
import { mustRun } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import { artifact, Ground, NEIGHBOURS, NPM_INSTALL, STRICTLY } from './ground';

// A first installation downloads the SDK and TypeScript.
jest.setTimeout(300_000);

/** Sends a follow-up to the job `argv[2]`, and prints how it ended. */
const STORY = `
import { FollowUpClient, FollowUpError } from 'agent-follow-up-client';
async function story() {
  const followUps = await FollowUpClient.connect();
  const [projectId = '', jobId = ''] = process.argv.slice(2);
  const times = { polling: { initial: '500ms', maximum: '1s' }, confirm: '1s' } as const;
  const request = { projectId, jobId, requestId: 'one', prompt: 'Please fix the typo.', ...times };
  const job = await followUps.execute(request);
  const error: unknown = await followUps.execute({ ...request, jobId: 'nobody' }).catch((reason: unknown) => reason);
  console.log(job.status, job.prLink, error instanceof FollowUpError && error.code);
  await followUps.close();
}
void story();
`;
const SOURCES = ['commonjs.cts', 'module.mts'];
const AS_BUNDLERS_DO = ['--module', 'esnext', '--moduleResolution', 'bundler', '--noEmit', 'module.mts'];

let ground: Ground;
const cwd = temporaryFolder();
const inProject = () => ({ cwd, env: ground.env });

beforeAll(async () => {
  ground = await Ground.open();
  await ground.startWorker();
  await writeFile(path.join(cwd, 'package.json'), '{ "private": true }');
  for (const source of SOURCES) await writeFile(path.join(cwd, source), STORY);
  const compiler = (['typescript', '@types/node'] as const).map((name) => `${name}@${devDependencies[name]}`);
  await mustRun('npm', [...NPM_INSTALL, artifact('client'), ...compiler, ...NEIGHBOURS], inProject());
  for (const how of [['--module', 'node16', ...SOURCES], AS_BUNDLERS_DO])
    await mustRun('npx', ['tsc', ...STRICTLY, ...how], inProject());
});

afterAll(() => ground.close());

describe('the client package', () => {
  it('installs one copy of each package of the SDK, of the version that is tested, nothing native, and neither zod nor undici', async () => {
    const listed = await mustRun('npm', ['ls', '--all', '--parseable', '--long'], inProject());
    const copies = listed.split('\n').map((line) => line.split(':')[1] ?? '');
    const ofSdk = copies.filter((id) => id.startsWith('@temporalio/'));
    expect(ofSdk).toHaveLength(new Set(ofSdk).size);
    expect(ofSdk).toContain(`@temporalio/client@${dependencies['@temporalio/client']}`);
    expect(ofSdk.join()).not.toMatch(/core-bridge|worker|testing/);
    expect(copies.filter((id) => /^(zod|undici)@/.test(id)).sort()).toEqual([...NEIGHBOURS].sort());
    expect(await mustRun('find', ['node_modules', '-name', '*.node'], inProject())).toBe('');
  });

  it.each(['commonjs.cjs', 'module.mjs'])('compiles strictly, and works from %s', async (program) => {
    const { projectId, jobId } = ground.sandbox.addJob({ turn: { reads: 2 } });
    const printed = await mustRun('node', [program, projectId, jobId], inProject());
    const { prLink } = ground.sandbox.job({ projectId, jobId }).job;
    expect(printed).toBe(`completed ${String(prLink)} JOB_NOT_FOUND\n`);
  });
});
