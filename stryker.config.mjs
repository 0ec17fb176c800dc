// `npm run stryker` changes the pure rules in one place at a time, and checks that a test fails (docs/proofs.md).

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: [
    'src/follow-up/*.ts',
    'src/batch/{board,next-batch-step,progress,started-items}.ts',
    'src/contract/{outcome,response-counts}.ts',
  ],
  plugins: ['./test/harness/stryker-runner.mjs'],
  testRunner: 'pure',
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
