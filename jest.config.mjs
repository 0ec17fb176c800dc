import { maxWorkers, project, pureProject } from './test/harness/jest-projects.mjs';

/*
 * One file more at a time than in the long suites: its tests wait more than they work (measured on two cores: three files
 * 201 s, two files 273 s).
 */

/**
 * The tests of `npm test`, by what they need: nothing; a Temporal server and the workflow bundle; or these and the
 * compiled programs. The suites that kill processes and drive a browser are in jest.long.config.mjs.
 *
 * @type {import('jest').Config}
 */
export default { maxWorkers: maxWorkers + 1, projects: [pureProject, project('server'), project('process')] };
