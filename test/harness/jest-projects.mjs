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
  // These packages are ES modules, which Jest can't `require` before Node 24.
  transformIgnorePatterns: ['/node_modules/(?!(string-width|get-east-asian-width|strip-ansi|ansi-regex)/)'],
};

/** The folders of test/ by what their tests need. */
export const SERVER_FOLDERS = ['client', 'dev', 'replay', 'worker', 'workflow'];
export const PROCESS_FOLDERS = ['process'];
export const LONG_FOLDERS = ['faults', 'slow', 'web-ui'];
export const DOORS_FOLDERS = ['doors'];

/** Jest runs a project's set-up only where one of its tests runs. */
const SET_UP = {
  server: {
    globalSetup: '<rootDir>/test/harness/server-setup.ts',
    globalTeardown: '<rootDir>/test/harness/server-teardown.ts',
    setupFilesAfterEnv: ['<rootDir>/test/harness/server-timeout.ts'],
  },
  process: {
    globalSetup: '<rootDir>/test/harness/process-setup.ts',
    globalTeardown: '<rootDir>/test/harness/server-teardown.ts',
    setupFilesAfterEnv: ['<rootDir>/test/harness/process-timeout.ts'],
  },
  doors: { globalSetup: '<rootDir>/test/doors/set-up.ts' },
};

/**
 * The jest project of the tests in some folders of test/.
 *
 * @param {'server' | 'process' | 'doors'} kind
 * @param {string[]} folders
 */
export function project(kind, folders) {
  const testMatch = folders.map((folder) => `<rootDir>/test/${folder}/**/*.test.ts`);
  return { ...shared, displayName: kind, testMatch, ...SET_UP[kind] };
}

/**
 * The tests of the workflows once more, with a codec that encrypts every payload and decrypts nothing else. Those in which
 * somebody writes a payload without the key are left out.
 */
export const encryptedProject = {
  ...project('server', ['workflow']),
  displayName: 'encrypted',
  globals: { ENCRYPT_PAYLOADS: true },
  testPathIgnorePatterns: ['foreign-caller'],
};

/** The jest project of all other tests, so that none is left out for want of an entry. They need no set-up. */
export const pureProject = {
  ...shared,
  displayName: 'pure',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  testPathIgnorePatterns: [...SERVER_FOLDERS, ...PROCESS_FOLDERS, ...LONG_FOLDERS, ...DOORS_FOLDERS].map(
    (folder) => `<rootDir>/test/${folder}/`,
  ),
};

/** Two test files at a time, on a larger machine half as many as it has cores: all share one Temporal server. */
export const maxWorkers = Math.max(2, Math.floor(availableParallelism() / 2));
