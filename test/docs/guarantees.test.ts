import { expect, it } from '@jest/globals';
import { allTests, guaranteedRows } from '../../tools/lib/proofs';

it('every row of docs/guarantees.md has a test, and every fault test has a row', () => {
  const tests = allTests();
  expect([...new Set(tests.flatMap(({ rows }) => rows))].sort()).toEqual(guaranteedRows().sort());
  const faultTests = tests.filter(({ file }) => file.endsWith('.fault.test.ts'));
  expect(faultTests.length).toBeGreaterThan(5);
  expect(faultTests.filter(({ rows }) => rows.length === 0)).toEqual([]);
});
