import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it, jest } from '@jest/globals';
import { dependencies, devDependencies } from '../../package.json';
import { mustRun } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import {
  artifactPath,
  CONFLICTING_DEPENDENCIES,
  NPM_INSTALL,
  STRICT_COMPILER_FLAGS,
} from './end-to-end-environment';

// A first installation downloads the SDK and TypeScript.
jest.setTimeout(300_000);

/** The other doors send follow-ups with it. */
const PROGRAM = `
import { FollowUpClient, hasCode } from 'agent-follow-up-client';
import { InMemoryFollowUpClient } from 'agent-follow-up-client/testing';
const followUps = new InMemoryFollowUpClient(() => ({ end: 'JobNotFound' }));
const request = { projectId: 'docs', jobId: 'nobody', requestId: 'one', prompt: 'Please fix the typo.' };
followUps.execute(request).catch((error: unknown) => {
  console.log(typeof FollowUpClient.connect, hasCode(error, 'JOB_NOT_FOUND'));
});
`;
const SOURCES = ['commonjs.cts', 'module.mts'];
const AS_BUNDLERS_DO = ['--module', 'esnext', '--moduleResolution', 'bundler', '--noEmit', 'module.mts'];

const cwd = temporaryFolder();

it('the client package compiles strictly and loads from CommonJS and ES modules; it brings one copy of each package of the SDK, of the version that is tested, nothing native, and neither zod nor undici', async () => {
  await writeFile(path.join(cwd, 'package.json'), '{ "private": true }');
  for (const source of SOURCES) await writeFile(path.join(cwd, source), PROGRAM);
  const compiler = (['typescript', '@types/node'] as const).map((name) => `${name}@${devDependencies[name]}`);
  await mustRun('npm', [...NPM_INSTALL, artifactPath('client'), ...compiler, ...CONFLICTING_DEPENDENCIES], {
    cwd,
  });
  for (const how of [['--module', 'node16', ...SOURCES], AS_BUNDLERS_DO])
    await mustRun('npx', ['tsc', ...STRICT_COMPILER_FLAGS, ...how], { cwd });
  for (const program of ['commonjs.cjs', 'module.mjs'])
    expect(await mustRun('node', [program], { cwd })).toBe('function true\n');

  const listed = await mustRun('npm', ['ls', '--all', '--parseable', '--long'], { cwd });
  const copies = listed.split('\n').map((line) => line.split(':')[1] ?? '');
  const ofSdk = copies.filter((id) => id.startsWith('@temporalio/'));
  expect(ofSdk).toHaveLength(new Set(ofSdk).size);
  expect(ofSdk).toContain(`@temporalio/client@${dependencies['@temporalio/client']}`);
  expect(ofSdk.join()).not.toMatch(/core-bridge|worker|testing/);
  expect(copies.filter((id) => /^(zod|undici)@/.test(id)).sort()).toEqual(
    [...CONFLICTING_DEPENDENCIES].sort(),
  );
  expect(await mustRun('find', ['node_modules', '-name', '*.node'], { cwd })).toBe('');
});
