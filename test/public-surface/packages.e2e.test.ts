import path from 'node:path';
import { expect, it } from '@jest/globals';
import { artifactPath, ARTIFACTS } from '../end-to-end/end-to-end-environment';
import { Program } from '../harness/program';
import { ROOT } from '../harness/worker-process';
import { createPackageManifests } from './package-manifests';
import { MANIFESTS, readStored, toJson } from './stored';

it('the exports, programs and peer dependencies of the release archives equal the stored copy; if the change is allowed (docs/versioning.md), run npm run public-surface', () => {
  expect(toJson(createPackageManifests(path.join(ROOT, 'artifacts')))).toBe(readStored(MANIFESTS));
});

it.each(ARTIFACTS.filter((name) => name !== 'worker'))(
  'npm publish --dry-run accepts the archive of the %s without a warning',
  async (name) => {
    // Nothing listens at this address, so npm must not try again. Without a token, npm warns that the user must log in.
    const registry = [
      '--registry',
      'http://127.0.0.1:9/',
      '--//127.0.0.1:9/:_authToken=none',
      '--fetch-retries=0',
    ];
    const publish = new Program('npm', ['publish', '--dry-run', ...registry, artifactPath(name)]);
    const { code, stderr } = await publish.waitForEnd();
    expect(stderr.split('\n').filter((line) => /^npm (warn|error)/.test(line))).toEqual([]);
    expect(code).toBe(0);
  },
);
