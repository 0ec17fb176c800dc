import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { engines } from '../../package.json';
import { ROOT } from '../harness/worker-process';
import { NODE_VERSIONS } from './end-to-end-environment';

const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');

it('the image, .nvmrc and docs/deployment.md name the newest tested line of Node, and package.json names the oldest tested version', () => {
  const [newest] = NODE_VERSIONS.at(-1)?.split('.') ?? [];
  expect(read('deploy/Dockerfile')).toContain(`FROM node:${newest}-`);
  expect(read('.nvmrc').trim()).toBe(newest);
  expect(read('docs/deployment.md')).toContain(`Use Node ${newest}, `);
  expect(`${engines.node}.0`).toBe(`>=${NODE_VERSIONS[0]}`);
});

it('docs/callers.md names the tested versions of Node', () => {
  for (const version of NODE_VERSIONS) expect(read('docs/callers.md')).toContain(version);
});
