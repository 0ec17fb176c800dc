import { expect, it } from '@jest/globals';
import { allTests, guaranteedRows } from '../../scripts/proofs-docs';

const tests = allTests();

it('docs/guarantees.md has a test that proves each row, once, and every row that a test proves', () => {
  expect([...new Set(tests.flatMap((test) => test.rows))].sort()).toEqual(guaranteedRows().sort());
});

it('docs/guarantees.md has a row for every test that breaks something', () => {
  const breaking = tests.filter(({ file }) => file.endsWith('.fault.test.ts'));
  expect(breaking.length).toBeGreaterThan(5);
  expect(breaking.filter((test) => test.rows.length === 0)).toEqual([]);
});
