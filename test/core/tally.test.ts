import { expect, it } from '@jest/globals';
import { addCounts } from '../../src/core/tally';

it('a tally holds 32 names at most, any word may be one; further ones count as other', () => {
  let observed: Record<string, number> = {};
  for (let i = 0; i < 100; i++) observed = addCounts(observed, { [`word ${i}`]: 1 });
  expect(Object.keys(observed)).toHaveLength(33);
  expect(observed.other).toBe(68);
  expect(addCounts(observed, { 'word 3': 1 })['word 3']).toBe(2);
  expect(Object.entries(addCounts({}, { ['__proto__']: 1 }))).toEqual([['__proto__', 1]]);
});
