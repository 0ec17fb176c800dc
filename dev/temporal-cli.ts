import { constants } from 'node:fs';
import { access, mkdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { buildTemporalCli } from './build-temporal';
import { withCacheLock } from './cache-lock';
import { downloadedCliPath, downloadTemporalCli } from './download-temporal';
import { type CliVersion, NEEDED, PINNED_CLI, probeTemporalCli } from './temporal-version';

export type CliSource = 'TEMPORAL_CLI_PATH' | 'PATH' | 'built' | 'downloaded';

export interface TemporalCli {
  readonly path: string;
  readonly source: CliSource;
  readonly version: CliVersion;
}

export interface FindOptions {
  /** Where `TEMPORAL_CLI_PATH` and `PATH` are read, and the environment of what is started; usually `process.env`. */
  readonly env: NodeJS.ProcessEnv;
  /** Called with one line for people when something takes long or was not usable. */
  readonly say: (line: string) => void;
  /** Where downloads and builds are kept. @default .cache/temporal-cli in the project, which git ignores */
  readonly cacheFolder?: string;
  /** As in `downloadTemporalCli`. @default 15000 ms */
  readonly downloadAnswerMs?: number;
}

const CACHE_FOLDER = path.resolve(__dirname, '../.cache/temporal-cli');
const SUFFIX = process.platform === 'win32' ? '.exe' : '';

/**
 * Finds a Temporal CLI for the dev server, or makes one. The first that works, of: `TEMPORAL_CLI_PATH`; `temporal` on
 * PATH; what was built or downloaded before; a download by the Temporal SDK; a build from the Go module proxy.
 *
 * @throws Error when `TEMPORAL_CLI_PATH` is set and can't be used, or when nothing works: then with all that was tried,
 *   and with what to do.
 */
export async function findTemporalCli(options: FindOptions): Promise<TemporalCli> {
  const { env, say, cacheFolder = CACHE_FOLDER } = options;
  const configured = env.TEMPORAL_CLI_PATH;
  if (configured) return useConfigured(configured, env);

  const tried: string[] = [];
  const onPath = await findOnPath('temporal', env);
  if (onPath === null) {
    tried.push('`temporal` on PATH: there is none');
  } else {
    const probe = await probeTemporalCli(onPath, env);
    if (probe.ok) return { path: onPath, source: 'PATH', version: probe.version };
    tried.push(`\`temporal\` on PATH: ${onPath} is not usable: ${probe.problem}`);
    say(`${onPath} on PATH is not usable: ${probe.problem}; looking further`);
  }

  const cached = await useCached(cacheFolder, env, say);
  if (cached !== null) return cached;
  await mkdir(cacheFolder, { recursive: true }).catch((error: unknown) => {
    throw nothingFound([...tried, `the cache folder ${cacheFolder}: ${(error as Error).message}`]);
  });
  return withCacheLock(path.join(cacheFolder, 'lock'), say, async () => {
    // Another process may have made it while this one waited.
    return (await useCached(cacheFolder, env, say)) ?? (await make(options, cacheFolder, tried));
  });
}

async function useConfigured(configured: string, env: NodeJS.ProcessEnv): Promise<TemporalCli> {
  const probe = await probeTemporalCli(configured, env);
  if (probe.ok) return { path: configured, source: 'TEMPORAL_CLI_PATH', version: probe.version };
  throw new Error(
    `TEMPORAL_CLI_PATH: ${configured} can't be used: ${probe.problem}. ` +
      `Set it to the executable of ${NEEDED}, or unset it to have one found.`,
  );
}

/** A platform in the name keeps apart the binaries of machines that share the folder, such as a host and its container. */
function builtCliPath(cacheFolder: string): string {
  return path.join(cacheFolder, `${PINNED_CLI}-${process.platform}-${process.arch}`, `temporal${SUFFIX}`);
}

function downloadFolder(cacheFolder: string): string {
  return path.join(cacheFolder, `sdk-${process.platform}-${process.arch}`);
}

async function useCached(
  cacheFolder: string,
  env: NodeJS.ProcessEnv,
  say: (line: string) => void,
): Promise<TemporalCli | null> {
  const places = [
    { source: 'built', file: builtCliPath(cacheFolder) },
    { source: 'downloaded', file: downloadedCliPath(downloadFolder(cacheFolder)) },
  ] as const;
  for (const { source, file } of places) {
    if (!(await isExecutable(file))) continue;
    const probe = await probeTemporalCli(file, env);
    if (probe.ok) return { path: file, source, version: probe.version };
    say(`${file} is not usable: ${probe.problem}; looking further`);
  }
  return null;
}

async function make(options: FindOptions, cacheFolder: string, tried: string[]): Promise<TemporalCli> {
  const { env, say, downloadAnswerMs } = options;
  const ways = [
    {
      source: 'downloaded',
      name: 'a download by the Temporal SDK',
      make: async () => {
        const folder = downloadFolder(cacheFolder);
        await mkdir(folder, { recursive: true });
        const limit = downloadAnswerMs === undefined ? {} : { answerMs: downloadAnswerMs };
        return downloadTemporalCli({ folder, env, say, ...limit });
      },
    },
    {
      source: 'built',
      name: 'a build from the Go module proxy',
      make: async () => {
        const go = await findOnPath('go', env);
        if (go === null) throw new Error('there is no Go toolchain (`go`) on PATH');
        const target = builtCliPath(cacheFolder);
        await buildTemporalCli({ go, target, env, say });
        return target;
      },
    },
  ] as const;
  for (const way of ways) {
    let problem: string;
    try {
      const file = await way.make();
      const probe = await probeTemporalCli(file, env);
      if (probe.ok) return { path: file, source: way.source, version: probe.version };
      problem = `${file} is not usable: ${probe.problem}`;
    } catch (error) {
      problem = (error as Error).message;
    }
    tried.push(`${way.name}: ${problem}`);
    say(`${way.name} brought nothing: ${problem}`);
  }
  throw nothingFound(tried);
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
