import { maxWorkers, project, pureProject } from './test/harness/jest-projects.mjs';

/**
 * The tests of `npm test`, by what they need: nothing; a Temporal server and the workflow bundle; or these and the
 * compiled programs. The suites that kill processes and drive a browser are in jest.long.config.mjs.
 *
 * @type {import('jest').Config}
 */
export default {
  maxWorkers,
  testSequencer: '<rootDir>/test/harness/slowest-first.mjs',
  projects: [pureProject, project('server'), project('process')],
};
