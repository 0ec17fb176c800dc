import { LONG_FOLDERS, maxWorkers, project } from './test/harness/jest-projects.mjs';

/**
 * The tests of `npm run test:long`: kills of real processes, and the Web UI in a browser. They take minutes.
 *
 * @type {import('jest').Config}
 */
export default { maxWorkers, projects: [project('process', LONG_FOLDERS)] };
