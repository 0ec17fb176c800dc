import { stripTemporalEnv } from '../../tools/lib/dev-server';

/** How the set-up tells the test files, which run in processes of their own, what it has started. */
export const VARIABLES = {
  cli: 'FOLLOW_UP_TEST_CLI',
  address: 'FOLLOW_UP_TEST_ADDRESS',
  bundle: 'FOLLOW_UP_TEST_BUNDLE',
} as const;

/**
 * By default a server of one shard looks for tasks and timers every 50 ms, and fires a timer up to a second late: a follow-up
 * of ten tasks waits for a second or two, a batch for ten, and a clock that skips notices each jump only a second later.
 */
export const DYNAMIC_CONFIG = {
  'history.transferProcessorMaxPollRPS': 1_000,
  'history.timerProcessorMaxPollRPS': 1_000,
  'history.timerProcessorMaxTimeShift': '10ms',
  /** Lets a start ask for a clock that skips the waits of its workflow (`skipsTime` in environment.ts). */
  'frontend.WorkflowTimeSkippingEnabled': true,
} as const;

/** The Temporal server of this test run. @throws Error in a test file whose project has none, see jest.config.mjs. */
export function temporal() {
  const address = variable(VARIABLES.address);
  const env: NodeJS.ProcessEnv = { ...stripTemporalEnv(process.env), TEMPORAL_ADDRESS: address };
  return {
    /** `127.0.0.1:PORT` of the dev server that all test files of a run share: use ids and task queues of your own. */
    address,
    /** The bundle of src/workflows, for `workflowBundle: { codePath: bundlePath }`. */
    bundlePath: variable(VARIABLES.bundle),
    /** The executable of the Temporal CLI, for tests that start a server of their own or call `temporal workflow …`. */
    cli: variable(VARIABLES.cli),
    /** The environment of a worker or starter process: this one's, with the shared server and no other. */
    env,
  };
}

function variable(name: string): string {
  const value = process.env[name];
  if (value) return value;
  throw new Error('this test has no Temporal server: name its file *.server.test.ts (jest-projects.mjs)');
}
