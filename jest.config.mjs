import { maxWorkers, project, pureProject } from './test/harness/jest-projects.mjs';

/**
 * The tests of `npm test`, in three projects: `pure` tests have no requirements, `server` tests need a Temporal server and the
 * workflow bundle, and `process` tests also need the compiled programs. jest.long.config.mjs runs the longer tests.
 *
 * @type {import('jest').Config}
 */
export default {
  maxWorkers,
  testSequencer: '<rootDir>/test/harness/slowest-first.mjs',
  projects: [pureProject, project('server'), project('process')],
};
