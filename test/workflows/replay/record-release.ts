/**
 * Records the files with which the tests of later versions check that running workflows survive an upgrade: `npm run
 * record-release`. With `--replace`, the script replaces the files of a version that is not released.
 *
 * The folder test/releases/VERSION has these files, which are kept permanently:
 *
 * - `histories/*.json`: the history of each path through the workflows. Every later version must replay all of them.
 * - `worker.tgz`: the compiled worker with its lock file, from the release archive, without the dependencies, the pages and the
 *   bundle's source map. `npm ci` installs the same dependencies again.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { version } from '../../../package.json';
import { bundleCode } from '../../../src/worker/bundle';
import { findTemporalCli } from '../../../tools/lib/temporal-cli';
import { RELEASES } from '../../releases/releases';
import { recordHistories } from './record-histories';

const ROOT = path.resolve(__dirname, '../../..');

const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });

/** @throws Error if the files of this version exist and may not be replaced */
async function prepareFolder(folder: string): Promise<void> {
  const tag = `v${version}`;
  if (run('git', 'tag', '--list', tag).trim() !== '')
    throw new Error(
      `version ${version} is released, because the tag ${tag} exists; its files are kept, so set the next version in package.json`,
    );
  if (process.argv.includes('--replace')) await rm(folder, { recursive: true, force: true });
  if (await stat(folder).catch(() => undefined))
    throw new Error(`${path.relative(ROOT, folder)} exists; for a version without a release, use --replace`);
  await mkdir(path.join(folder, 'histories'), { recursive: true });
}

/** Replaces the source map with an empty one, because the map is half of the file's size. The SDK requires that there is a map. */
function removeSourceMap(bundle: string): void {
  const marker = 'sourceMappingURL=data:application/json;charset=utf-8;base64,';
  const [code = ''] = readFileSync(bundle, 'utf8').split(marker);
  const map = JSON.stringify({ version: 3, sources: [], names: [], mappings: '' });
  writeFileSync(bundle, `${code}${marker}${Buffer.from(map).toString('base64')}`);
}

/** Makes the release archive of the worker, and copies its compiled code and its lock file. Two runs produce the same bytes. */
function recordWorker(scratch: string, file: string): void {
  run('npm', 'run', '--silent', 'package', '--', path.join(scratch, 'artifacts'));
  const archive = path.join(scratch, 'artifacts', `agent-follow-up-worker-${version}.tgz`);
  const parts = ['dist', 'package.json', 'npm-shrinkwrap.json'].map((name) => `package/${name}`);
  run('tar', '-xzf', archive, '-C', scratch, ...parts);
  removeSourceMap(path.join(scratch, 'package/dist/workflow-bundle.js'));
  const reproducible = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
  run('tar', ...reproducible, '-czf', file, '-C', scratch, ...parts);
}

async function main(): Promise<void> {
  const folder = path.join(RELEASES, version);
  await prepareFolder(folder);
  const scratch = await mkdtemp(path.join(os.tmpdir(), 'record-release-'));
  try {
    recordWorker(scratch, path.join(folder, 'worker.tgz'));
    const bundlePath = path.join(scratch, 'workflow-bundle.js');
    await writeFile(bundlePath, await bundleCode());
    const cli = (await findTemporalCli({ env: process.env, report: console.error })).path;
    await recordHistories({ folder: path.join(folder, 'histories'), bundlePath, cli });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
