import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { AgentApi } from '../agent-api/client';
import type { JobAddress } from '../core/activities';
import { VARIABLES } from './variables';

const HELP = `Works on follow-ups until SIGTERM or SIGINT, and takes its configuration from the environment.

Variables:
  ${[...VARIABLES, 'HTTPS_PROXY, NO_PROXY', 'TEMPORAL_*, temporal.toml'].join('\n  ')}

AGENT_API_BASE_URL and one of AGENT_API_KEY and AGENT_API_KEY_FILE are required; each has its meaning and default in
docs/configuration.md.

Options:
  --check-key --project P --job J   read the job once with this configuration, say whether the service takes the key,
                                    and end: 0 if it does (also if there is no such job), 1 if not
  --help, --version
`;

const USAGE =
  'error: the worker takes --help, --version, or --check-key with --project and --job; its settings are environment variables\n';

const OPTIONS = {
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'V' },
  'check-key': { type: 'boolean' },
  project: { type: 'string' },
  job: { type: 'string' },
} as const;

type Asked =
  | { readonly what: 'print'; readonly output: string; readonly isError: boolean }
  | { readonly what: 'check key'; readonly address: JobAddress };

/** What is asked for instead of working. Arguments hold no settings: anybody on the machine can read them. */
export function commandLine(words: readonly string[], version: string): Asked | undefined {
  if (words.length === 0) return undefined;
  try {
    const { values } = parseArgs({ args: [...words], options: OPTIONS });
    const { project, job } = values;
    if (values.help) return { what: 'print', output: HELP, isError: false };
    if (values.version) return { what: 'print', output: `${version}\n`, isError: false };
    if (values['check-key'] && project !== undefined && job !== undefined) {
      return { what: 'check key', address: { projectId: project, jobId: job } };
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
  return { what: 'print', output: USAGE, isError: true };
}

/** By one read of a job. Whether the key may write too, only a message would show. */
export async function checkKey(
  api: AgentApi,
  address: JobAddress,
): Promise<{ isGood: boolean; words: string }> {
  const answer = await api.getJob(address);
  if (answer.kind === 'job')
    return { isGood: true, words: `the key may read the job; it is ${answer.job.status}` };
  const isGood = answer.httpStatus === 404;
  return { isGood, words: isGood ? 'the service takes the key, and has no such job' : answer.message };
}

export function workerVersion(): string {
  // Two folders up from src/worker and dist/worker alike.
  const file = path.join(__dirname, '../../package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
