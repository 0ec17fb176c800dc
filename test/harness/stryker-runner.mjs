import { PluginKind, declareClassPlugin } from '@stryker-mutator/api/plugin';
import { DryRunStatus, TestStatus, toMutantRunResult } from '@stryker-mutator/api/test-runner';
import { transformSync } from '@swc/core';
import { readFileSync, readdirSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import path from 'node:path';
import { performance } from 'node:perf_hooks';

/*
 * This plugin runs the tests of the pure rules for `npm run stryker`. Stryker's own plugin starts Jest for every mutant and loads every
 * test file again, which takes hours for 1,900 mutants. This plugin loads the code and the tests once, and then runs only the tests that execute the mutant. The
 * tests use Jest's own `expect`, `it.each` and `jest.fn`.
 */

/**
 * The test files. The file `property` is excluded because its sequences are random: a mutant could be killed in one run and survive
 * the next run. The file `permits-source` reads the source, which Stryker changes. The file `items` tests none of the files that
 * Stryker changes.
 */
const FILES = {
  'follow-up': /^(?!property|permits-source)[^.]+\.test\.ts$/,
  batch: /^(?!items)[^.]+\.test\.ts$/,
  contract: /^(outcome|response-counts)\.test\.ts$/,
};

/** The excluded tests, which take seconds each. */
const EXCLUDED = /the items that earlier runs started/;

const require = createRequire(import.meta.url);
const { expect } = require('expect');
const { bind } = require('jest-each');
const { fn } = require('jest-mock');

const compiled = new Map();
Module._extensions['.ts'] = (module, filename) => {
  if (!compiled.has(filename))
    compiled.set(
      filename,
      transformSync(readFileSync(filename, 'utf8'), {
        filename,
        sourceMaps: false,
        jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
        module: { type: 'commonjs' },
      }).code,
    );
  module._compile(compiled.get(filename), filename);
};

let tests = [];
let titles = [];
const it = (title, run) => tests.push({ id: [...titles, title].join(' > '), run });
const describe = (title, collect) => {
  titles.push(title);
  collect();
  titles.pop();
};
it.each = bind(it);
describe.each = bind(describe);
const globals = { describe, expect, it, test: it, jest: { fn } };
const load = Module._load;
Module._load = (request, ...rest) => (request === '@jest/globals' ? globals : load(request, ...rest));

/** Loads the test files and the code again, and returns the tests. */
function loadTests() {
  for (const file of Object.keys(require.cache)) if (file.endsWith('.ts')) delete require.cache[file];
  tests = [];
  titles = [];
  for (const [folder, pattern] of Object.entries(FILES)) {
    const directory = path.resolve('test', folder);
    for (const name of readdirSync(directory).filter((each) => pattern.test(each)))
      describe(`${folder}/${name}`, () => require(path.join(directory, name)));
  }
  tests = tests.filter(({ id }) => !EXCLUDED.test(id));
  return tests;
}

async function runTest({ id, run }) {
  const startedAt = performance.now();
  const result = () => ({ id, name: id, timeSpentMs: performance.now() - startedAt });
  try {
    await run();
    return { ...result(), status: TestStatus.Success };
  } catch (error) {
    return { ...result(), status: TestStatus.Failed, failureMessage: String(error) };
  }
}

class PureRunner {
  stryker = (globalThis.__stryker__ = {});

  capabilities() {
    return { reloadEnvironment: true };
  }

  async dryRun() {
    const { stryker } = this;
    const results = [];
    for (const test of loadTests()) {
      stryker.currentTestId = test.id;
      results.push(await runTest(test));
      stryker.currentTestId = undefined;
    }
    return { status: DryRunStatus.Complete, tests: results, mutantCoverage: stryker.mutantCoverage };
  }

  async mutantRun({ activeMutant, testFilter, hitLimit, mutantActivation, reloadEnvironment, disableBail }) {
    const { stryker } = this;
    Object.assign(stryker, { activeMutant: undefined, hitCount: 0, hitLimit });
    const results = [];
    try {
      if (mutantActivation === 'static') stryker.activeMutant = activeMutant.id;
      if (reloadEnvironment) loadTests();
      stryker.activeMutant = activeMutant.id;
      for (const test of tests.filter(({ id }) => testFilter?.includes(id) ?? true)) {
        results.push(await runTest(test));
        if (results.at(-1).status === TestStatus.Failed) break;
      }
    } catch (error) {
      results.push({
        id: 'load',
        name: 'load',
        timeSpentMs: 0,
        status: TestStatus.Failed,
        failureMessage: String(error),
      });
    }
    stryker.activeMutant = undefined;
    if (stryker.hitCount > hitLimit) return { status: DryRunStatus.Timeout, reason: 'hit limit' };
    return toMutantRunResult({ status: DryRunStatus.Complete, tests: results }, disableBail);
  }
}

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, 'pure', PureRunner)];
