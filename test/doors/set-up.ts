import { chmod, cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { findTemporalCli } from '../../tools/lib/temporal-cli';
import { mustRun } from '../harness/program';
import { VARIABLES } from '../harness/temporal';
import { ROOT } from '../harness/worker-process';
import { ARTIFACTS, artifact, NEIGHBOURS, NPM_INSTALL, PLACE, TEAM, unpacked } from './ground';

/**
 * Makes the artefacts, as an adopter does, unpacks them, and installs them beside the SDK in one project for all doors. Finds
 * the Temporal CLI for the servers that the doors start.
 */
export default async function doorsSetUp(): Promise<void> {
  const say = (line: string): void => void process.stderr.write(`[test set-up] ${line}\n`);
  process.env[VARIABLES.cli] ??= (await findTemporalCli({ env: process.env, say })).path;
  await mustRun('npm', ['run', 'package'], { cwd: ROOT });
  const place = await mkdtemp(path.join(os.tmpdir(), 'agent-follow-up-doors-'));
  process.env[PLACE] = place;
  // The user nobody works in it.
  await chmod(place, 0o755);
  await Promise.all([...ARTIFACTS.map(unpack), installForTeam(place)]);
}

export async function removeDoors(): Promise<void> {
  const place = process.env[PLACE] ?? '';
  // Of what is read-only only root may remove something.
  await mustRun('chmod', ['-R', 'u+w', place], { cwd: place });
  await rm(place, { recursive: true });
}

async function unpack(name: (typeof ARTIFACTS)[number]): Promise<void> {
  const folder = path.dirname(unpacked(name));
  await mkdir(folder, { recursive: true });
  await mustRun('tar', ['-xzf', artifact(name)], { cwd: folder });
  if (name === 'worker') await mustRun('chmod', ['-R', 'a-w', 'package'], { cwd: folder });
}

/** The TypeScript example as it lies in the repository, so that its path to the artefact holds, with what a team has more. */
async function installForTeam(place: string): Promise<void> {
  const cwd = path.join(place, TEAM);
  const filter = (file: string) => !file.includes('node_modules');
  await cp(path.join(ROOT, TEAM), cwd, { recursive: true, filter });
  await symlink(path.join(ROOT, 'artifacts'), path.join(place, 'artifacts'));
  await mustRun('npm', [...NPM_INSTALL, artifact('plugin'), artifact('sandbox'), ...NEIGHBOURS], { cwd });
}
