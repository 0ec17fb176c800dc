import { chmod, cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { findTemporalCli } from '../../tools/lib/temporal-cli';
import { mustRun } from '../harness/program';
import { VARIABLES } from '../harness/temporal';
import { ROOT } from '../harness/worker-process';
import {
  ARTIFACTS,
  artifactPath,
  CONFLICTING_DEPENDENCIES,
  NPM_INSTALL,
  NODE_VERSIONS,
  SETUP_FOLDER_VARIABLE,
  EXAMPLE_PROJECT,
  unpackedPath,
} from './end-to-end-environment';

/**
 * Builds the artifacts with `npm run package`, as an adopter does, and unpacks them. Installs the packages next to the SDK in one
 * project for all end-to-end tests. Installs the supported versions of Node. Finds the Temporal CLI for the servers that the tests
 * start.
 */
export default async function setUpEndToEnd(): Promise<void> {
  const report = (line: string): void => void process.stderr.write(`[test set-up] ${line}\n`);
  process.env[VARIABLES.cli] ??= (await findTemporalCli({ env: process.env, report })).path;
  await mustRun('npm', ['run', 'package'], { cwd: ROOT });
  const folder = await mkdtemp(path.join(os.tmpdir(), 'agent-follow-up-e2e-'));
  process.env[SETUP_FOLDER_VARIABLE] = folder;
  // The worker runs as another user, who must be able to read this folder.
  await chmod(folder, 0o755);
  await Promise.all([...ARTIFACTS.map(unpack), installExampleProject(folder), installNodes(folder)]);
}

export async function removeSetupFolder(): Promise<void> {
  const folder = process.env[SETUP_FOLDER_VARIABLE] ?? '';
  // Without this, only root can remove files from the read-only folders.
  await mustRun('chmod', ['-R', 'u+w', folder], { cwd: folder });
  await rm(folder, { recursive: true });
}

/** Installs every version of Node from the packages that the npm package `node` depends on. */
async function installNodes(setupFolder: string): Promise<void> {
  const cwd = path.join(setupFolder, 'nodes');
  await mkdir(cwd);
  const platform = `${process.platform}-${process.arch}`;
  const programs = NODE_VERSIONS.map((version) => `node-${version}@npm:node-${platform}@${version}`);
  await mustRun('npm', [...NPM_INSTALL, '--prefix', cwd, ...programs], { cwd });
}

async function unpack(name: (typeof ARTIFACTS)[number]): Promise<void> {
  const folder = path.dirname(unpackedPath(name));
  await mkdir(folder, { recursive: true });
  await mustRun('tar', ['-xzf', artifactPath(name)], { cwd: folder });
  if (name === 'worker') await mustRun('chmod', ['-R', 'a-w', 'package'], { cwd: folder });
}

/**
 * Copies the TypeScript example to the same relative path as in the repository, so that its path to the artifact is valid. Then
 * installs the example with the other packages and the conflicting dependencies of a team.
 */
async function installExampleProject(setupFolder: string): Promise<void> {
  const cwd = path.join(setupFolder, EXAMPLE_PROJECT);
  const filter = (file: string) => !file.includes('node_modules');
  await cp(path.join(ROOT, EXAMPLE_PROJECT), cwd, { recursive: true, filter });
  await symlink(path.join(ROOT, 'artifacts'), path.join(setupFolder, 'artifacts'));
  await mustRun(
    'npm',
    [...NPM_INSTALL, artifactPath('plugin'), artifactPath('sandbox'), ...CONFLICTING_DEPENDENCIES],
    { cwd },
  );
}
