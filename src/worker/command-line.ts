import { readFileSync } from 'node:fs';
import path from 'node:path';
import { VARIABLES } from './variables';

const HELP = `Runs the worker for follow-ups until SIGTERM or SIGINT. Environment variables configure the worker.
The options are --help and --version.

Variables:
  ${[...VARIABLES, 'HTTPS_PROXY, NO_PROXY', 'TEMPORAL_*, temporal.toml'].join('\n  ')}

AGENT_API_BASE_URL and either AGENT_API_KEY or AGENT_API_KEY_FILE are required. docs/configuration.md has the meaning and the
default of each variable.
`;

/**
 * Returns the text that the process prints instead of running the worker, or undefined without arguments. No setting is an argument,
 * because every user of the machine can read the arguments of a process.
 */
export function handleArguments(args: readonly string[], version: string) {
  if (args.length === 0) return undefined;
  const argumentText = args.join(' ');
  if (argumentText === '--version') return { output: `${version}\n`, isError: false };
  return { output: HELP, isError: argumentText !== '--help' };
}

export function workerVersion(): string {
  // The path is the same from src/worker and from dist/worker.
  const file = path.join(__dirname, '../../package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
