/**
 * Stores the public surface of the sources and of the release archives: `npm run public-surface`. The tests in this folder compare
 * the surface with the stored copy. docs/versioning.md states which changes are allowed.
 */
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createPackageManifests } from './package-manifests';
import { MANIFESTS, toJson, writeStored } from './stored';
import { createSurface } from './surface';

async function main(): Promise<void> {
  for (const [name, text] of Object.entries(await createSurface())) writeStored(name, text);
  const archives = await mkdtemp(path.join(os.tmpdir(), 'public-surface-'));
  try {
    execFileSync('npm', ['run', '--silent', 'package', '--', archives], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    writeStored(MANIFESTS, toJson(createPackageManifests(archives)));
  } finally {
    await rm(archives, { recursive: true, force: true });
  }
}

void main();
