import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, mkdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { stripTemporalEnv } from './dev-server';
import {
  buildTemporalCli,
  downloadedCliPath,
  downloadTemporalCli,
  type MakeOptions,
  PINNED_CLI,
  withCacheLock,
} from './make-temporal-cli';

export interface TemporalCli {
  readonly path: string;
  readonly source: 'TEMPORAL_CLI_PATH' | 'PATH' | 'built' | 'downloaded';
  readonly version: { readonly cli: string; readonly server: string };
}

/** `env` is where `TEMPORAL_CLI_PATH` and `PATH` are read, too; usually `process.env`. */
export interface FindOptions extends MakeOptions {
  /** Where downloads and builds are kept. @default .cache/temporal-cli in the project, which git ignores */
  readonly cacheFolder?: string;
  /** As in `downloadTemporalCli`. @default 15000 ms */
  readonly downloadAnswerMs?: number;
}

/**
 * The oldest server that is used, the one inside {@link PINNED_CLI}: what the project guarantees and measures was
 * measured on it, and CLI releases before 1.8 lack a flag that the dev server is started with
 * (`--ui-disable-news-fetch`). The server counts, because a CLI that was built from source may call itself 0.0.0-DEV.
 */
const OLDEST_SERVER = '1.31.2';
const NEEDED = `Temporal CLI ${PINNED_CLI} (server ${OLDEST_SERVER}) or newer`;

/** Loading 200 MB from a cold and slow disk takes seconds; a program that says nothing for so long is not the CLI. */
const VERSION_LIMIT_MS = 20_000;

const CACHE_FOLDER = path.resolve(__dirname, '../.cache/temporal-cli');
/** In names, it keeps apart the binaries of machines that share the folder, such as a host and its container. */
const PLATFORM = `${process.platform}-${process.arch}`;
const SUFFIX = process.platform === 'win32' ? '.exe' : '';

/**
 * Finds a Temporal CLI for the dev server, or makes one. The first that works, of: `TEMPORAL_CLI_PATH`; `temporal` on
 * PATH; what was built or downloaded before; a download by the Temporal SDK; a build from the Go module proxy.
 *
 * @throws Error when `TEMPORAL_CLI_PATH` is set and can't be used, or when nothing works: then with all that was tried,
 *   and with what to do.
 */
export async function findTemporalCli(options: FindOptions): Promise<TemporalCli> {
  const { env, say, cacheFolder = CACHE_FOLDER, downloadAnswerMs } = options;
  const configured = env.TEMPORAL_CLI_PATH;
  if (configured) {
    return checked(configured, 'TEMPORAL_CLI_PATH', env).catch((error: unknown) => {
      const advice = `Set it to the executable of ${NEEDED}, or unset it to have one found.`;
      throw new Error(`TEMPORAL_CLI_PATH: ${configured} can't be used: ${messageOf(error)}. ${advice}`);
    });
  }
  const tried: string[] = [];
  /** Undefined where it is not usable, which is said and kept for the end. */
  const attempt = async (name: string, get: () => Promise<TemporalCli>): Promise<TemporalCli | undefined> => {
    try {
      return await get();
    } catch (error) {
      tried.push(`${name}: ${messageOf(error)}`);
      say(`${name} can't be used: ${messageOf(error)}`);
      return undefined;
    }
  };

  const onPath = await findOnPath('temporal', env);
  if (onPath === null) tried.push('`temporal` on PATH: there is none');
  const usable = onPath && (await attempt(`${onPath} on PATH`, () => checked(onPath, 'PATH', env)));
  if (usable) return usable;

  const built = path.join(cacheFolder, `${PINNED_CLI}-${PLATFORM}`, `temporal${SUFFIX}`);
  const downloadFolder = path.join(cacheFolder, `sdk-${PLATFORM}`);
  const cached = async (): Promise<TemporalCli | undefined> => {
    for (const [file, source] of [
      [built, 'built'],
      [downloadedCliPath(downloadFolder), 'downloaded'],
    ] as const) {
      const found = (await isExecutable(file)) && (await attempt(file, () => checked(file, source, env)));
      if (found) return found;
    }
    return undefined;
  };
  const download = async () =>
    checked(await downloadTemporalCli(downloadFolder, options, downloadAnswerMs), 'downloaded', env);
  const build = async () => {
    const go = await findOnPath('go', env);
    if (go === null) throw new Error('there is no Go toolchain (`go`) on PATH');
    await buildTemporalCli(go, built, options);
    return checked(built, 'built', env);
  };

  const before = await cached();
  if (before !== undefined) return before;
  await mkdir(cacheFolder, { recursive: true }).catch((error: unknown) => {
    throw nothingFound([...tried, `the cache folder ${cacheFolder}: ${messageOf(error)}`]);
  });
  return withCacheLock(path.join(cacheFolder, 'lock'), say, async () => {
    // Another process may have made it while this one waited.
    const made =
      (await cached()) ??
      (await attempt('a download by the Temporal SDK', download)) ??
      (await attempt('a build from the Go module proxy', build));
    if (made === undefined) throw nothingFound(tried);
    return made;
  });
}

/** Runs `executable --version`. @throws Error that says why it is no Temporal CLI, or not new enough */
async function checked(
  executable: string,
  source: TemporalCli['source'],
  env: NodeJS.ProcessEnv,
): Promise<TemporalCli> {
  const limits = { timeout: VERSION_LIMIT_MS, killSignal: 'SIGKILL', maxBuffer: 64 * 1_024 } as const;
  const running = promisify(execFile)(executable, ['--version'], { ...limits, env: stripTemporalEnv(env) });
  const { stdout } = await running.catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new Error('there is no such file');
    if (code === 'EACCES') throw new Error('it is not an executable file');
    throw new Error(`\`--version\` fails: ${firstLine(messageOf(error))}`);
  });
  const [, cli, server] = /^temporal version (\S+) \(Server ([^\s,)]+)/.exec(stdout) ?? [];
  if (cli === undefined || server === undefined) {
    throw new Error(`it is no Temporal CLI: \`--version\` printed ${JSON.stringify(firstLine(stdout))}`);
  }
  // With `numeric`, 1.9 is before 1.31. A pre-release such as 1.31.2-rc.1 counts as what it precedes.
  if (server.localeCompare(OLDEST_SERVER, 'en', { numeric: true }) < 0) {
    throw new Error(`it is too old: CLI ${cli} with server ${server}; needed is ${NEEDED}`);
  }
  return { path: executable, source, version: { cli, server } };
}

function nothingFound(tried: readonly string[]): Error {
  return new Error(
    [
      'There is no Temporal CLI, whose dev server is needed here. What was tried:',
      ...tried.map((line) => `  - ${line.replaceAll('\n', '\n    ')}`),
      'Do one of these and run the command again:',
      `  - install ${NEEDED}, so that \`temporal\` is on PATH: https://docs.temporal.io/cli#install`,
      '  - or set TEMPORAL_CLI_PATH to its executable',
      '  - or let this machine reach https://temporal.download',
      '  - or install Go (https://go.dev/dl), at least the version that tools/temporal-cli/go.mod names: the CLI is then built',
    ].join('\n'),
  );
}

/** The first executable file of that name, as a shell would find it. */
async function findOnPath(name: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  const folders = (env.PATH ?? '').split(path.delimiter).filter((folder) => path.isAbsolute(folder));
  for (const folder of folders) {
    const file = path.join(folder, name + SUFFIX);
    if (await isExecutable(file)) return file;
  }
  return null;
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function firstLine(text: string): string {
  return (text.split('\n')[0] ?? '').slice(0, 200);
}
