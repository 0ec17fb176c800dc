import { stripTemporalEnv } from '../../tools/lib/dev-server';

/** The variables in which the setup passes its results to the test files, because test files run in separate processes. */
export const VARIABLES = {
  cli: 'FOLLOW_UP_TEST_CLI',
  address: 'FOLLOW_UP_TEST_ADDRESS',
  bundle: 'FOLLOW_UP_TEST_BUNDLE',
} as const;

/**
 * Faster task and timer processing of the dev server. By default, a server with one shard polls its tasks and timers every 50 ms
 * and fires a timer up to a second late. A follow-up of ten tasks would wait for one or two seconds in total, and a batch
 * for ten seconds. With time skipping, each skip would take effect only a second later.
 */
export const DYNAMIC_CONFIG = {
  'history.transferProcessorMaxPollRPS': 1_000,
  'history.timerProcessorMaxPollRPS': 1_000,
  'history.timerProcessorMaxTimeShift': '10ms',
  /** Allows starts that request a clock that skips the workflow's waits (`skipsTime` in environment.ts). */
  'frontend.WorkflowTimeSkippingEnabled': true,
} as const;

/** Returns the Temporal server of this test run. @throws Error if the Jest project of the test file starts no server */
export function temporal() {
  const address = variable(VARIABLES.address);
  const env: NodeJS.ProcessEnv = { ...stripTemporalEnv(process.env), TEMPORAL_ADDRESS: address };
  return {
    /** `127.0.0.1:PORT` of the dev server that all test files share. Tests must therefore use unique IDs and task queues. */
    address,
    /** The file with the bundle of src/workflows, for `workflowBundle: { codePath: bundlePath }`. */
    bundlePath: variable(VARIABLES.bundle),
    /** The executable of the Temporal CLI, for tests that start a separate server or call `temporal workflow …`. */
    cli: variable(VARIABLES.cli),
    /**
     * The environment of a worker or CLI process: this process's variables, with the shared server instead of any other server.
     */
    env,
  };
}

function variable(name: string): string {
  const value = process.env[name];
  if (value) return value;
  throw new Error(
    'This test has no Temporal server. Rename its file to *.server.test.ts (see jest-projects.mjs).',
  );
}
