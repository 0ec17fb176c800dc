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
  // These are ES modules, which Jest can't `require` before Node 24.
  transformIgnorePatterns: ['/node_modules/(?!(@noble/hashes|get-port)/)'],
  setupFilesAfterEnv: ['<rootDir>/test/harness/timeout.ts'],
};

/** Jest runs a project's set-up only where one of its tests runs. */
const WITH_PROCESSES = {
  globalSetup: '<rootDir>/test/harness/process-setup.ts',
  globalTeardown: '<rootDir>/test/harness/server-teardown.ts',
};

/** What the tests with a suffix need, `NAME.SUFFIX.test.ts`. A test without a suffix needs nothing. */
const SET_UP = {
  /** A Temporal server and the bundle of the workflows. */
  server: {
    globalSetup: '<rootDir>/test/harness/shared-server.ts',
    globalTeardown: '<rootDir>/test/harness/server-teardown.ts',
  },
  /** These, and the compiled programs. */
  process: WITH_PROCESSES,
  /** The same, and minutes. */
  long: WITH_PROCESSES,
  /** The same, to break something in the middle: SIGKILL, a stopped server, resets. docs/proofs.md names each. */
  fault: WITH_PROCESSES,
  /** The end-to-end environment: the packed artifacts, which the tests install and run as a user does. */
  e2e: {
    globalSetup: '<rootDir>/test/doors/set-up.ts',
    globalTeardown: '<rootDir>/test/doors/tear-down.ts',
  },
};

/**
 * The jest project of the tests with a suffix.
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

/** The jest project of all other tests, so that none is left out for want of an entry. They need no set-up. */
export const pureProject = {
  ...shared,
  displayName: 'pure',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  testPathIgnorePatterns: Object.keys(SET_UP).map((suffix) => `\\.${suffix}\\.test\\.ts$`),
};

/**
 * Three test files at a time, on a larger machine half as many as it has cores: they wait more than they work, and all share
 * one Temporal server (measured on two cores: `npm test` took 201 s with three files, 273 s with two).
 */
export const maxWorkers = Math.max(3, Math.floor(availableParallelism() / 2));
