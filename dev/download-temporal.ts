import { rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OutputTail } from './output-tail';
import { every15Seconds } from './sign-of-life';
import { stripTemporalEnv } from './temporal-env';
import { PINNED_CLI } from './temporal-version';
import { spawnTethered, type TetheredProcess } from './tether';

export interface DownloadOptions {
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  readonly say: (line: string) => void;
  /**
   * How long to wait for the first byte, in milliseconds.
   *
   * @default 15000. The SDK itself sets no limit. A machine without a network fails within a second (measured); the
   *   limit is for networks that swallow what is sent.
   */
  readonly answerMs?: number;
}

/** A download that has brought nothing for so long has died. It has no limit as a whole: lines are slow. */
const STALL_MS = 30_000;

/** Where the SDK keeps the release in its download folder (source: SDK Core, `ephemeral_server`, `get_or_download`). */
export function downloadedCliPath(folder: string): string {
  const suffix = process.platform === 'win32' ? '.exe' : '';
  return path.join(folder, `temporal-v${PINNED_CLI}${suffix}`);
}

/**
 * The program that makes the SDK download. Starting a local test environment is the only public way to it; it runs in a
 * process of its own because the SDK's native part can't be interrupted, while a process can.
 */
const DOWNLOAD_PROGRAM = `
const [, sdk, downloadDir, version] = process.argv;
const executable = { type: 'cached-download', downloadDir, version, ttl: '3650 days' };
require(sdk).TestWorkflowEnvironment.createLocal({ server: { executable } })
  .then((environment) => environment.teardown())
  .catch((error) => {
    console.error(JSON.stringify({ problem: error.message }));
    process.exitCode = 1;
  });
`;

/**
 * Makes the Temporal SDK download the pinned CLI into `folder`.
 *
 * @returns the path of the executable
 * @throws Error with one line that says why there is none
 */
export async function downloadTemporalCli(options: DownloadOptions): Promise<string> {
  const { folder, env, say, answerMs = 15_000 } = options;
  const target = downloadedCliPath(folder);
  const part = `${target}.downloading`;
  await rm(part, { force: true });
  say(`downloading Temporal CLI ${PINNED_CLI} with the Temporal SDK (once, into ${folder})`);
  const args = ['-e', DOWNLOAD_PROGRAM, require.resolve('@temporalio/testing'), folder, `v${PINNED_CLI}`];
  const child = await spawnTethered(process.execPath, args, {
    env: stripTemporalEnv(env),
    stdout: 'ignore',
    stderr: 'pipe',
  });
  const words = new OutputTail(child.stderr);
  const quiet = every15Seconds((elapsed) => {
    say(`still downloading the Temporal CLI (${elapsed})`);
  });
  try {
    const problem = await watch(child, target, part, answerMs);
    if (await exists(target)) return target;
    throw new Error(problem ?? sdkProblem(words));
  } finally {
    quiet();
    await child.stop();
    await rm(part, { force: true });
  }
}

/** Waits until the file is there, the program has ended, or nothing moves any more; in that last case says so. */
async function watch(
  child: TetheredProcess,
  target: string,
  part: string,
  answerMs: number,
): Promise<string | null> {
  let [size, moved] = [0, Date.now()];
  const ended = child.exited.then(() => 'ended' as const);
  while (!(await exists(target))) {
    if ((await Promise.race([ended, sleep(250)])) === 'ended') return null;
    const now = (await stat(part).catch(() => null))?.size ?? 0;
    if (now !== size) [size, moved] = [now, Date.now()];
    const limitMs = size === 0 ? answerMs : STALL_MS;
    if (Date.now() - moved > limitMs) {
      const what = size === 0 ? 'nothing came' : `it stalled at ${Math.round(size / 1e6)} MB`;
      return `${what} from temporal.download for ${limitMs / 1_000} s`;
    }
  }
  return null;
}

async function exists(file: string): Promise<boolean> {
  return (await stat(file).catch(() => null)) !== null;
}

/** The SDK's error repeats the whole URL in front of the cause, which alone is of use. */
function sdkProblem(words: OutputTail): string {
  const line = words.lines(1);
  const message = /^\{"problem":(".*")\}$/.exec(line)?.[1];
  const text = message === undefined ? line : String(JSON.parse(message));
  const cause = text.split('): ').at(-1) ?? text;
  return `temporal.download: ${cause.slice(0, 300) || 'the download ended without a word'}`;
}
