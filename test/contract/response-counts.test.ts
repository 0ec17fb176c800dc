import { expect, it } from '@jest/globals';
import { addCounts, type ResponseCounts } from '../../src/contract/response-counts';

it('addCounts adds the counts of the same response', () => {
  expect(addCounts({ active: 2, http_503: 1 }, { active: 3, completed: 1 })).toEqual({
    active: 5,
    http_503: 1,
    completed: 1,
  });
});

it('responses have at most 32 distinct counts, and further responses are counted as other', () => {
  let counts: ResponseCounts = {};
  for (let i = 0; i < 100; i++) counts = addCounts(counts, { [`word ${i}`]: 1 });
  expect(Object.keys(counts)).toHaveLength(33);
  expect(counts.other).toBe(68);
  expect(addCounts(counts, { 'word 3': 1 })['word 3']).toBe(2);
});

it('any text can be counted, even __proto__', () => {
  expect(Object.entries(addCounts({}, { ['__proto__']: 1 }))).toEqual([['__proto__', 1]]);
});
