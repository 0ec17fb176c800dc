import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { allTests, guaranteedRows, PROOFS_FILE, proofsPage } from '../../scripts/proofs-docs';

const tests = allTests();
const rows = guaranteedRows();

describe('docs/guarantees.md', () => {
  it('has at most sixty rows, each with a name of its own', () => {
    expect(rows.length).toBeLessThanOrEqual(60);
    expect(new Set(rows).size).toBe(rows.length);
  });

  it('has a test that proves each row, and every row that a test proves', () => {
    expect([...new Set(tests.flatMap((test) => test.rows))].sort()).toEqual([...rows].sort());
  });

  it('has a row for every test that breaks something', () => {
    const breaking = tests.filter(({ file }) => file.endsWith('.fault.test.ts'));
    expect(breaking.length).toBeGreaterThan(10);
    expect(breaking.filter((test) => test.rows.length === 0)).toEqual([]);
  });
});

it('docs/proofs.md is the page that `npm run docs` makes', () => {
  expect(readFileSync(PROOFS_FILE, 'utf8')).toBe(proofsPage());
});
