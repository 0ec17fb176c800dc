import { expect, it } from '@jest/globals';
import { addCounts, type ResponseCounts } from '../../src/contract/response-counts';

it('counts of the same response are added', () => {
  expect(addCounts({ active: 2, http_503: 1 }, { active: 3, completed: 1 })).toEqual({
    active: 5,
    http_503: 1,
    completed: 1,
  });
});

it('counts have 32 names at most, and further ones count as other', () => {
  let counts: ResponseCounts = {};
  for (let i = 0; i < 100; i++) counts = addCounts(counts, { [`word ${i}`]: 1 });
  expect(Object.keys(counts)).toHaveLength(33);
  expect(counts.other).toBe(68);
  expect(addCounts(counts, { 'word 3': 1 })['word 3']).toBe(2);
});

it('any text can be the name of a count', () => {
  expect(Object.entries(addCounts({}, { ['__proto__']: 1 }))).toEqual([['__proto__', 1]]);
});
