import { maxWorkers, project } from './test/harness/jest-projects.mjs';

/**
 * The tests of `npm run test:long`: kills of real processes, the Web UI in a browser, and the end-to-end tests (the packed artifacts and every
 * example, from outside). They take minutes, of which they wait for most: more files at a time than in `npm test`.
 *
 * @type {import('jest').Config}
 */
export default {
  maxWorkers: maxWorkers + 2,
  testSequencer: '<rootDir>/test/harness/slowest-first.mjs',
  projects: [project('fault'), project('long'), project('e2e')],
};
