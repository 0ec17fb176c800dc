import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { devDependencies } from '../../package.json';
import { mustRun } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import {
  artifactPath,
  CONFLICTING_DEPENDENCIES,
  NPM_INSTALL,
  STRICT_COMPILER_FLAGS,
} from './end-to-end-environment';

/** This program only uses the in-memory client. Other end-to-end tests send follow-ups with the package. */
const PROGRAM = `
import { FollowUpClient, FollowUpError, hasCode } from 'agent-follow-up-client';
import { InMemoryFollowUpClient } from 'agent-follow-up-client/testing';
const followUps = new InMemoryFollowUpClient(() => ({ end: 'JobNotFound' }));
const request = { projectId: 'docs', jobId: 'missing', requestId: 'one', prompt: 'Please fix the typo.' };
followUps.execute(request).catch((error: unknown) => {
  if (error instanceof FollowUpError && hasCode(error, 'CONFLICT')) throw error;
  if (error instanceof FollowUpError) error.code satisfies string;
  console.log(typeof FollowUpClient.connect, hasCode(error, 'JOB_NOT_FOUND'));
});
`;
/** A file that uses the types of each sub-path of the package. */
const ENTRIES = `
import type { SimulatedOutcome } from 'agent-follow-up-client/testing';
import type { ChildFollowUpOptions } from 'agent-follow-up-client/workflow';
export const outcome: SimulatedOutcome = { end: 'completed' };
export const options: ChildFollowUpOptions = { taskQueue: 'follow-up' };
`;
const SOURCES = ['commonjs.cts', 'module.mts'];
/** Many NestJS projects use these settings. TypeScript then ignores the `exports` of a package. */
const NODE10_OPTIONS = '--module commonjs --moduleResolution node10 --ignoreDeprecations 6.0'.split(' ');
const BUNDLER_OPTIONS = ['--module', 'esnext', '--moduleResolution', 'bundler', '--noEmit', 'module.mts'];

const cwd = temporaryFolder();

it('the client package compiles strictly, loads from CommonJS and ES modules, and installs one copy of each SDK package, no native code, and neither zod nor undici', async () => {
  await writeFile(path.join(cwd, 'package.json'), '{ "private": true }');
  for (const source of SOURCES) await writeFile(path.join(cwd, source), PROGRAM);
  await writeFile(path.join(cwd, 'entries.cts'), ENTRIES);
  const compiler = (['typescript', '@types/node'] as const).map((name) => `${name}@${devDependencies[name]}`);
  await mustRun('npm', [...NPM_INSTALL, artifactPath('client'), ...compiler, ...CONFLICTING_DEPENDENCIES], {
    cwd,
  });
  const node10 = [...NODE10_OPTIONS, '--noEmit', 'commonjs.cts', 'entries.cts'];
  for (const options of [node10, ['--module', 'node16', ...SOURCES], BUNDLER_OPTIONS])
    await mustRun('npx', ['tsc', ...STRICT_COMPILER_FLAGS, ...options], { cwd });
  // sdk-versions.e2e.test.ts runs the package with every supported version of Node.
  for (const program of ['commonjs.cjs', 'module.mjs'])
    expect(await mustRun(process.execPath, [program], { cwd })).toBe('function true\n');

  const listed = await mustRun('npm', ['ls', '--all', '--parseable', '--long'], { cwd });
  const copies = listed.split('\n').map((line) => line.split(':')[1] ?? '');
  const sdkPackages = copies.filter((id) => id.startsWith('@temporalio/'));
  expect(sdkPackages).toHaveLength(new Set(sdkPackages).size);
  expect(sdkPackages.join('\n')).toMatch(/^@temporalio\/client@/m);
  expect(sdkPackages.join()).not.toMatch(/core-bridge|worker|testing/);
  expect(copies.filter((id) => /^(zod|undici)@/.test(id)).sort()).toEqual(
    [...CONFLICTING_DEPENDENCIES].sort(),
  );
  expect(await mustRun('find', ['node_modules', '-name', '*.node'], { cwd })).toBe('');
});
