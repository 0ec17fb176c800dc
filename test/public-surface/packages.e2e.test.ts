import path from 'node:path';
import { expect, it } from '@jest/globals';
import { ROOT } from '../harness/worker-process';
import { createPackageManifests } from './package-manifests';
import { MANIFESTS, readStored, toJson } from './stored';

it('the exports, programs and peer dependencies of the release archives equal the stored copy; if the change is allowed (docs/versioning.md), run npm run public-surface', () => {
  expect(toJson(createPackageManifests(path.join(ROOT, 'artifacts')))).toBe(readStored(MANIFESTS));
});
