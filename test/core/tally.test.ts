import { expect, it } from '@jest/globals';
import { addCounts, isLost, needsDecision } from '../../src/core/tally';
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

it('a job is lost after five 404s that span confirm, the last of them fresh', () => {
  const lost = (count: number, askedAt: number, freshFrom = 0) =>
    isLost({ last: null, count, notFound: { count, since: 1_000 } }, askedAt, 30_000, freshFrom);
  expect([lost(4, 31_000), lost(5, 30_999), lost(5, 31_000)]).toEqual([false, false, true]);
  expect([lost(5, 70_999, 71_000), lost(5, 71_000, 71_000)]).toEqual([false, true]);
});
