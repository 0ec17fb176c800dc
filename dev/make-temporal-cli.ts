import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stripTemporalEnv } from './dev-server';
import { keepLastLines, spawnTethered, type TetheredProcess } from './tether';

/** The release of the CLI that is downloaded or built; tools/temporal-cli/go.mod names the same one. */
export const PINNED_CLI = '1.8.2';

export interface MakeOptions {
  /** Of what is started. */
  readonly env: NodeJS.ProcessEnv;
  /** Called with one line for people. */
  readonly say: (line: string) => void;
}

/** Where the SDK keeps the release in its download folder (source: SDK Core, `ephemeral_server`, `get_or_download`). */
export function downloadedCliPath(folder: string): string {
  return path.join(folder, `temporal-v${PINNED_CLI}${process.platform === 'win32' ? '.exe' : ''}`);
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
    // The message repeats the whole URL in front of the cause, which alone is of use.
    console.error(error.message.split('): ').at(-1).slice(0, 300));
    process.exitCode = 1;
  });
`;

/** A download that has brought nothing for so long has died. It has no limit as a whole: lines are slow. */
const STALL_MS = 30_000;

/**
 * Makes the Temporal SDK download the pinned CLI into `folder`.
 *
 * @param answerMs how long to wait for the first byte. The SDK itself sets no limit. A machine without a network fails
 *   within a second (measured); the limit is for networks that swallow what is sent.
 * @returns the path of the executable
 * @throws Error with one line that says why there is none
 */
export async function downloadTemporalCli(
  folder: string,
  { env, say }: MakeOptions,
  answerMs = 15_000,
): Promise<string> {
  await mkdir(folder, { recursive: true });
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
  const words = keepLastLines(child.stderr);
  try {
    const problem = await whileSaying(say, 'downloading the Temporal CLI', () =>
      watchDownload(child, target, part, answerMs),
    );
    if ((await sizeOf(target)) !== null) return target;
    throw new Error(`temporal.download: ${problem ?? (words(1) || 'the download ended without a word')}`);
  } finally {
    await child.stop();
    await rm(part, { force: true });
  }
}

/** Waits until the file is there, the program has ended, or nothing moves any more; in that last case says so. */
async function watchDownload(child: TetheredProcess, target: string, part: string, answerMs: number) {
  let [size, movedAt] = [0, Date.now()];
  const ended = child.exited.then(() => 'ended' as const);
  while ((await sizeOf(target)) === null && (await Promise.race([ended, sleep(250)])) !== 'ended') {
    const now = (await sizeOf(part)) ?? 0;
    if (now !== size) [size, movedAt] = [now, Date.now()];
    const limitMs = size === 0 ? answerMs : STALL_MS;
    if (Date.now() - movedAt > limitMs) {
      return `nothing came for ${limitMs / 1_000} s, after ${Math.round(size / 1e6)} MB`;
    }
  }
  return null;
}

async function sizeOf(file: string): Promise<number | null> {
  return (await stat(file).catch(() => null))?.size ?? null;
}

/** The Go module that pins the CLI and, by its go.sum, every package that goes into it. */
const GO_MODULE = path.resolve(__dirname, '../tools/temporal-cli');

/** Eight times the longest build that was measured: what lasts longer waits for something that will not come. */
const BUILD_LIMIT_MS = 60 * 60_000;

/**
 * Builds the pinned Temporal CLI, Web UI included, from the Go module proxy. What is half built has another name, so a
 * build that is killed leaves nothing that anybody would run.
 *
 * @param go the `go` executable
 * @param target where the executable will be
 * @throws Error with the last lines of what `go` said
 */
export async function buildTemporalCli(go: string, target: string, { env, say }: MakeOptions): Promise<void> {
  const folder = path.dirname(target);
  await mkdir(folder, { recursive: true });
  // What builds that were killed have left: some 100 MB each. The caller's lock keeps a living build out of here.
  const leftovers = (await readdir(folder)).filter((name) => name.endsWith('.part'));
  await Promise.all(leftovers.map((name) => rm(path.join(folder, name), { force: true })));
  const part = `${target}.${process.pid}.part`;
  say(`building Temporal CLI ${PINNED_CLI} from the Go module proxy, once: 4 to 7 minutes on two cores`);
  // Flags here win over GOFLAGS. The linker writes the release that `--version` prints, as the CLI's own releases do.
  const version = `-X github.com/temporalio/cli/internal/temporalcli.Version=${PINNED_CLI}`;
  const flags = ['-mod=readonly', '-buildvcs=false', `-ldflags=-s -w ${version}`];
  const child = await spawnTethered(
    go,
    ['build', ...flags, '-o', part, 'github.com/temporalio/cli/cmd/temporal'],
    {
      cwd: GO_MODULE,
      // CGO_ENABLED=0 needs no C compiler; GOWORK=off keeps a go.work of a folder above from taking part.
      env: { ...env, CGO_ENABLED: '0', GOWORK: 'off' },
      stdout: 'pipe',
      stderr: 'pipe',
    },
  );
  const words = keepLastLines(child.stdout, child.stderr);
  const limit = setTimeout(() => void child.stop(), BUILD_LIMIT_MS);
  try {
    const { code, signal } = await whileSaying(say, 'building the Temporal CLI', () => child.exited);
    if (code !== 0)
      throw new Error(`\`go build\` ended with ${signal ?? `exit code ${code}`}:\n${words(15)}`);
    await rename(part, target);
  } finally {
    clearTimeout(limit);
    await rm(part, { force: true });
  }
}

/** The holder touches the lock this often … */
const TOUCH_MS = 5_000;
/** … and one that was not touched for so long was left behind, also by a process of another machine or container. */
const STALE_MS = 30_000;

/**
 * Runs `work` in one process at a time. The lock saves work and protects nothing: should it be lost (a laptop that slept,
 * two processes that take over the same stale one), both do the work, each under a temporary name of its own.
 */
export async function withCacheLock<T>(
  file: string,
  say: (line: string) => void,
  work: () => Promise<T>,
): Promise<T> {
  if (!(await takeLock(file))) {
    say('another process is getting the Temporal CLI; waiting for it');
    await whileSaying(say, 'waiting for the other process', async () => {
      while (!(await takeLock(file))) await sleep(500);
    });
  }
  const touching = setInterval(() => {
    // A touch that fails makes the lock stale at worst.
    utimes(file, new Date(), new Date()).catch(() => undefined);
  }, TOUCH_MS);
  try {
    return await work();
  } finally {
    clearInterval(touching);
    await rm(file, { force: true });
  }
}

async function takeLock(file: string): Promise<boolean> {
  if (await isLeftBehind(file)) await rm(file, { force: true });
  try {
    await writeFile(file, `${process.pid} ${os.hostname()}`, { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function isLeftBehind(file: string): Promise<boolean> {
  const touched = await stat(file).catch(() => null);
  if (touched === null) return false;
  if (Date.now() - touched.mtimeMs > STALE_MS) return true;
  const [pid, host] = (await readFile(file, 'utf8').catch(() => '')).split(' ');
  if (host !== os.hostname()) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/** Says every 15 s that the work goes on, such as `still … (75 s)`, so that nobody takes it for dead. */
async function whileSaying<T>(
  say: (line: string) => void,
  doing: string,
  work: () => Promise<T>,
): Promise<T> {
  const startedAt = Date.now();
  const timer = setInterval(() => {
    say(`still ${doing} (${Math.round((Date.now() - startedAt) / 1_000)} s)`);
  }, 15_000);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
