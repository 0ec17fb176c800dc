import {
  DOORS_FOLDERS,
  encryptedProject,
  LONG_FOLDERS,
  maxWorkers,
  project,
} from './test/harness/jest-projects.mjs';

/**
 * The tests of `npm run test:long`: kills of real processes, the Web UI in a browser, the doors (both artefacts and every
 * example, from outside), and the workflows' tests once more with encrypted payloads. They take minutes.
 *
 * @type {import('jest').Config}
 */
export default {
  maxWorkers,
  projects: [project('process', LONG_FOLDERS), project('doors', DOORS_FOLDERS), encryptedProject],
};
