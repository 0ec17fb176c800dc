import { maxWorkers, project } from './test/harness/jest-projects.mjs';

/**
 * The tests of `npm run test:long`. `fault` tests kill real processes, `long` tests drive the Web UI in a browser, among others, and
 * `e2e` tests use the packed artifacts and every example as an adopter does. The tests take minutes. Many of them mostly wait, so
 * one more file runs at the same time than in `npm test`.
 *
 * @type {import('jest').Config}
 */
export default {
  maxWorkers: maxWorkers + 1,
  testSequencer: '<rootDir>/test/harness/slowest-first.mjs',
  projects: [project('fault'), project('long'), project('e2e')],
};
