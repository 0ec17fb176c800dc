import { readFileSync } from 'node:fs';
import path from 'node:path';
import { VARIABLES } from './variables';

const HELP = `The worker works on follow-ups until SIGTERM or SIGINT. Its settings are environment variables,
and its options are --help and --version.

Variables:
  ${[...VARIABLES, 'HTTPS_PROXY, NO_PROXY', 'TEMPORAL_*, temporal.toml'].join('\n  ')}

AGENT_API_BASE_URL and one of AGENT_API_KEY and AGENT_API_KEY_FILE are required; each has its meaning and default in
docs/configuration.md.
`;

/** What is printed instead of working. Arguments hold no settings: anybody on the machine can read them. */
export function handleArguments(args: readonly string[], version: string) {
  if (args.length === 0) return undefined;
  const argumentText = args.join(' ');
  if (argumentText === '--version') return { output: `${version}\n`, isError: false };
  return { output: HELP, isError: argumentText !== '--help' };
}

export function workerVersion(): string {
  // Two folders up from src/worker and dist/worker alike.
  const file = path.join(__dirname, '../../package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
