import { expect, it } from '@jest/globals';
import { allTests, guaranteedRows } from '../../tools/lib/proofs';

it('docs/guarantees.md has a row for every test that breaks something, and a test that proves each row', () => {
  const tests = allTests();
  expect([...new Set(tests.flatMap(({ rows }) => rows))].sort()).toEqual(guaranteedRows().sort());
  const breaking = tests.filter(({ file }) => file.endsWith('.fault.test.ts'));
  expect(breaking.length).toBeGreaterThan(5);
  expect(breaking.filter(({ rows }) => rows.length === 0)).toEqual([]);
});
