import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { stripTemporalEnv } from './temporal-env';

/** The release of the CLI that is downloaded or built; tools/temporal-cli/go.mod names the same one. */
export const PINNED_CLI = '1.8.2';

/**
 * The oldest server that is used, the one inside {@link PINNED_CLI}: what the project guarantees and measures was
 * measured on it, and CLI releases before 1.8 lack a flag that the dev server is started with
 * (`--ui-disable-news-fetch`). The server counts, because a CLI that was built from source may call itself 0.0.0-DEV.
 */
export const OLDEST_SERVER = '1.31.2';

/** What is asked for in messages. */
export const NEEDED = `Temporal CLI ${PINNED_CLI} (server ${OLDEST_SERVER}) or newer`;

export interface CliVersion {
  readonly cli: string;
  readonly server: string;
}

export type Probe =
  { readonly ok: true; readonly version: CliVersion } | { readonly ok: false; readonly problem: string };

/** Loading 200 MB from a cold and slow disk takes seconds; a program that says nothing for so long is not the CLI. */
const PROBE_LIMIT_MS = 20_000;

/** Runs `executable --version` and says whether it is a Temporal CLI, and new enough. Never throws. */
export async function probeTemporalCli(executable: string, env: NodeJS.ProcessEnv): Promise<Probe> {
  let output: string;
  try {
    const limits = { timeout: PROBE_LIMIT_MS, killSignal: 'SIGKILL', maxBuffer: 64 * 1_024 } as const;
    const { stdout } = await promisify(execFile)(executable, ['--version'], {
      ...limits,
      env: stripTemporalEnv(env),
    });
    output = stdout.trim();
  } catch (error) {
    return { ok: false, problem: startProblem(error as NodeJS.ErrnoException) };
  }
  const [, cli, server] = /^temporal version (\S+) \(Server ([^\s,)]+)/.exec(output) ?? [];
  if (cli === undefined || server === undefined) {
    return {
      ok: false,
      problem: `it is no Temporal CLI: \`--version\` printed ${JSON.stringify(firstLine(output))}`,
    };
  }
  if (isOlder(server, OLDEST_SERVER)) {
    return {
      ok: false,
      problem: `it is too old: CLI ${cli} with server ${server}; needed is ${NEEDED}`,
    };
  }
  return { ok: true, version: { cli, server } };
}

function startProblem(error: NodeJS.ErrnoException): string {
  if (error.code === 'ENOENT') return 'there is no such file';
  if (error.code === 'EACCES') return 'it is not an executable file';
  return `\`--version\` fails: ${firstLine(error.message)}`;
}

/** Compares `major.minor.patch`; what follows the patch, such as `-rc.1`, does not count. */
function isOlder(version: string, than: string): boolean {
  const [left, right] = [numbers(version), numbers(than)];
  const differing = right.findIndex((number, index) => (left[index] ?? 0) !== number);
  return differing !== -1 && (left[differing] ?? 0) < (right[differing] ?? 0);
}

function numbers(version: string): number[] {
  return version.split('.', 3).map((part) => Number.parseInt(part, 10) || 0);
}

function firstLine(text: string): string {
  return (text.split('\n')[0] ?? '').slice(0, 200);
}
