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
  SETUP_FOLDER_VARIABLE,
  EXAMPLE_PROJECT,
  unpackedPath,
} from './end-to-end-environment';

/**
 * Makes the artefacts, as an adopter does, unpacks them, and installs them beside the SDK in one project for all doors. Finds
 * the Temporal CLI for the servers that the doors start.
 */
export default async function setUpEndToEnd(): Promise<void> {
  const say = (line: string): void => void process.stderr.write(`[test set-up] ${line}\n`);
  process.env[VARIABLES.cli] ??= (await findTemporalCli({ env: process.env, report: say })).path;
  await mustRun('npm', ['run', 'package'], { cwd: ROOT });
  const place = await mkdtemp(path.join(os.tmpdir(), 'agent-follow-up-e2e-'));
  process.env[SETUP_FOLDER_VARIABLE] = place;
  // The user nobody works in it.
  await chmod(place, 0o755);
  await Promise.all([...ARTIFACTS.map(unpack), installForTeam(place)]);
}

export async function removeSetupFolder(): Promise<void> {
  const place = process.env[SETUP_FOLDER_VARIABLE] ?? '';
  // Of what is read-only only root may remove something.
  await mustRun('chmod', ['-R', 'u+w', place], { cwd: place });
  await rm(place, { recursive: true });
}

async function unpack(name: (typeof ARTIFACTS)[number]): Promise<void> {
  const folder = path.dirname(unpackedPath(name));
  await mkdir(folder, { recursive: true });
  await mustRun('tar', ['-xzf', artifactPath(name)], { cwd: folder });
  if (name === 'worker') await mustRun('chmod', ['-R', 'a-w', 'package'], { cwd: folder });
}

/** The TypeScript example as it lies in the repository, so that its path to the artefact holds, with what a team has more. */
async function installForTeam(place: string): Promise<void> {
  const cwd = path.join(place, EXAMPLE_PROJECT);
  const filter = (file: string) => !file.includes('node_modules');
  await cp(path.join(ROOT, EXAMPLE_PROJECT), cwd, { recursive: true, filter });
  await symlink(path.join(ROOT, 'artifacts'), path.join(place, 'artifacts'));
  await mustRun(
    'npm',
    [...NPM_INSTALL, artifactPath('plugin'), artifactPath('sandbox'), ...CONFLICTING_DEPENDENCIES],
    { cwd },
  );
}
