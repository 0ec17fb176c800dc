import { availableParallelism } from 'node:os';
import path from 'node:path';

const shared = {
  rootDir: path.resolve(import.meta.dirname, '../..'),
  roots: ['<rootDir>/test'],
  testEnvironment: 'node',
  transform: {
    '^.+\\.[jt]s$': [
      '@swc/jest',
      { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'commonjs' } },
    ],
  },
  // The transform converts these ES modules, because Jest can't `require` an ES module before Node 24.
  transformIgnorePatterns: ['/node_modules/(?!(@noble/hashes|get-port)/)'],
  setupFilesAfterEnv: ['<rootDir>/test/harness/timeout.ts'],
};

/** Jest runs a project's setup only if one of the project's tests runs. */
const WITH_PROCESSES = {
  globalSetup: '<rootDir>/test/harness/process-setup.ts',
  globalTeardown: '<rootDir>/test/harness/server-teardown.ts',
};

const WITH_LONG_TIMEOUT = {
  setupFilesAfterEnv: [...shared.setupFilesAfterEnv, '<rootDir>/test/harness/long-timeout.ts'],
};

/** The setup of the test files with each suffix, as in `NAME.SUFFIX.test.ts`. A test file without a suffix has no setup. */
const SET_UP = {
  /** Tests that need a Temporal server and the workflow bundle. */
  server: {
    globalSetup: '<rootDir>/test/harness/shared-server.ts',
    globalTeardown: '<rootDir>/test/harness/server-teardown.ts',
  },
  /** Tests that also need the compiled programs. */
  process: WITH_PROCESSES,
  /** Tests with the same needs that take minutes. */
  long: { ...WITH_PROCESSES, ...WITH_LONG_TIMEOUT },
  /**
   * Tests with the same needs that cause a fault, such as SIGKILL, a stopped server or a reset. docs/proofs.md lists these files.
   */
  fault: { ...WITH_PROCESSES, ...WITH_LONG_TIMEOUT },
  /** Tests that need the end-to-end environment: these tests install and run the packed artifacts as a user does. */
  e2e: {
    globalSetup: '<rootDir>/test/end-to-end/set-up.ts',
    globalTeardown: '<rootDir>/test/end-to-end/tear-down.ts',
    ...WITH_LONG_TIMEOUT,
  },
};

/**
 * Returns the Jest project of the test files with a suffix.
 *
 * @param {keyof typeof SET_UP} suffix
 */
export function project(suffix, folder = 'test') {
  return {
    ...shared,
    displayName: suffix,
    testMatch: [`<rootDir>/${folder}/**/*.${suffix}.test.ts`],
    ...SET_UP[suffix],
  };
}

/** The Jest project of all other test files. Every new file is therefore in a project. These tests have no setup. */
export const pureProject = {
  ...shared,
  displayName: 'pure',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  testPathIgnorePatterns: Object.keys(SET_UP).map((suffix) => `\\.${suffix}\\.test\\.ts$`),
};

/**
 * Jest runs three test files at a time, or half as many as the machine has cores if this is more. The tests wait more than they
 * compute, and all of them share one Temporal server. On two cores, `npm test` took 201 s with three files at a time, and 273 s
 * with two.
 */
export const maxWorkers = Math.max(3, Math.floor(availableParallelism() / 2));
