import path from 'node:path';

/**
 * A file that never exists. SDK and CLI take a missing configuration file for an empty one, while TypeScript's
 * `@temporalio/envconfig` 1.24 throws on a file that is empty.
 */
const NO_CONFIG_FILE = path.resolve(__dirname, '../.cache/no-temporal-profile/temporal.toml');

/** Names where the Temporal CLI is, not which server to talk to. */
const KEPT = 'TEMPORAL_CLI_PATH';

/**
 * A copy of `env` that knows no Temporal server: without its `TEMPORAL_*` variables, and with `TEMPORAL_CONFIG_FILE` set
 * so that the user's profiles are not read either. Tests, bench and demo give it to all that they start, plus the
 * address of their own dev server.
 */
export function stripTemporalEnv(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(([name]) => !name.startsWith('TEMPORAL_') || name === KEPT);
  return { ...Object.fromEntries(kept), TEMPORAL_CONFIG_FILE: NO_CONFIG_FILE };
}

/** The deprecated `--env-file` of the CLI, which defaults to a file in the home folder that can set any flag. */
export const NO_ENV_FILE = path.join(path.dirname(NO_CONFIG_FILE), 'temporal.yaml');
