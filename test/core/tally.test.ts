import { expect, it } from '@jest/globals';
import { addCounts, needsDecision } from '../../src/core/tally';
import { JOB } from '../harness/samples';

// The simulation has the changes of the job.
it('an activity that polls leaves refusals to the workflow, and absorbs other trouble', () => {
  const trouble = { kind: 'trouble', label: '', message: '' } as const;
  const all = [401, 403, 404, 429, 503];
  const decided = all.filter((httpStatus) => needsDecision({ ...trouble, httpStatus }, JOB));
  expect(decided).toEqual([401, 403, 404]);
});

it('a tally holds 32 names at most, any word may be one; further ones count as other', () => {
  let observed: Record<string, number> = {};
  for (let i = 0; i < 100; i++) observed = addCounts(observed, { [`word ${i}`]: 1 });
  expect(Object.keys(observed)).toHaveLength(33);
  expect(observed.other).toBe(68);
  expect(addCounts(observed, { 'word 3': 1 })['word 3']).toBe(2);
  expect(Object.entries(addCounts({}, { ['__proto__']: 1 }))).toEqual([['__proto__', 1]]);
});
