import { VARIABLES } from './variables';

const HELP = `Works on follow-ups until SIGTERM or SIGINT, and takes its configuration from the environment.

Variables:
  ${[...VARIABLES, 'HTTPS_PROXY, NO_PROXY', 'TEMPORAL_*, temporal.toml'].join('\n  ')}

AGENT_API_BASE_URL and one of AGENT_API_KEY and AGENT_API_KEY_FILE are required; each has its meaning and default in
docs/configuration.md.

Options:
  --help, --version
`;

/**
 * What the words after the program's name ask for instead of working; undefined where there are none. The worker takes no
 * settings from there, because anybody on the machine can read a process's arguments.
 */
export function commandLine(
  words: readonly string[],
  version: string,
): { readonly output: string; readonly isError: boolean } | undefined {
  const [first, ...more] = words;
  if (first === undefined) return undefined;
  if (more.length === 0 && (first === '--help' || first === '-h')) return { output: HELP, isError: false };
  if (more.length === 0 && (first === '--version' || first === '-V'))
    return { output: `${version}\n`, isError: false };
  return {
    output: `error: the worker takes no arguments but --help and --version; its settings are environment variables\n`,
    isError: true,
  };
}
