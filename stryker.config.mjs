// `npm run stryker` changes the pure rules in one place at a time, and checks that a test fails (docs/proofs.md).
import { pureProject } from './test/harness/jest-projects.mjs';

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: [
    'src/follow-up/*.ts',
    'src/batch/{board,next-batch-step,progress,started-items}.ts',
    'src/contract/{outcome,response-counts}.ts',
  ],
  testRunner: 'jest',
  jest: {
    config: {
      ...pureProject,
      // Stryker copies the files, and runs the tests in the copy.
      rootDir: '.',
      testMatch: ['<rootDir>/test/{follow-up,batch,contract}/*.test.ts'],
      // The sequences of `property` are random: a mutant could be killed in one run and survive the next run. The tests of
      // `permits-source` read the source, which Stryker changes.
      testPathIgnorePatterns: [
        ...pureProject.testPathIgnorePatterns,
        '/(property|permits-source)\\.test\\.ts$',
      ],
    },
  },
  coverageAnalysis: 'perTest',
  ignoreStatic: true,
  concurrency: 1,
  timeoutMS: 60_000,
  ignorePatterns: ['**', '!src/**', '!test/**', '!tools/lib/**', '!package.json', 'test/workflows'],
  tempDirName: '.cache/stryker',
  reporters: ['clear-text', 'json', 'progress-append-only'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false, allowEmojis: false },
  jsonReporter: { fileName: 'reports/stryker.json' },
};
