import { describe, expect, it } from '@jest/globals';
import type { AgentJob } from '../../src/core/job';
import type { JobAnswer } from '../../src/core/activities';
import { JOB } from '../harness/samples';
import {
  addCounts,
  afterReading,
  isLost,
  isUnauthorized,
  needsDecision,
  NO_TROUBLE,
  startTally,
  tallied,
} from '../../src/core/tally';

const known = { status: 'active', prLink: null, archivedAt: null };
const job = (change: Partial<AgentJob> = {}): JobAnswer => ({ kind: 'job', job: { ...JOB, ...change } });

const timeout: JobAnswer = { kind: 'trouble', label: 'timeout', message: 'timeout' };
const http = (httpStatus: number): JobAnswer => ({ ...timeout, label: `http ${httpStatus}`, httpStatus });

function afterAll(answers: JobAnswer[], everyMs: number) {
  return answers.reduce(
    (trouble, answer, index) => afterReading(trouble, answer, index * everyMs),
    NO_TROUBLE,
  );
}

it.each([
  ['the job as it was', job(), false],
  ['another status', job({ status: 'completed' }), true],
  ['another link', job({ prLink: 'https://example.test/pull/1' }), true],
  ['a 401', http(401), true],
  ['a 404', http(404), true],
  ['a 503', http(503), false],
  ['a time-out', timeout, false],
] as const)('an answer during a patience is judged: %s', (_, answer, expected) => {
  expect(needsDecision(answer, known)).toBe(expected);
});

describe('a tally', () => {
  it('counts every answer, and remembers the trouble in a row', () => {
    const answers = [job(), http(503), timeout, job(), timeout];
    const tally = answers.reduce((sum, answer) => tallied(sum, answer, 0), startTally(NO_TROUBLE));
    expect(tally).toMatchObject({
      polls: 5,
      observed: { active: 2, 'http 503': 1, timeout: 2 },
      trouble: { count: 1 },
      lastAnswer: 'timeout',
    });
    // The next one begins with this trouble, so that its waits go on growing.
    expect(tallied(startTally(tally.trouble), timeout, 0).trouble.count).toBe(2);
  });

  it('holds 32 names at most, any word may be one; further ones count as other', () => {
    let observed: Record<string, number> = {};
    for (let i = 0; i < 100; i++) observed = addCounts(observed, { [`word ${i}`]: 1 });
    expect(Object.keys(observed)).toHaveLength(33);
    expect(observed.other).toBe(68);
    expect(addCounts(observed, { 'word 3': 1 })['word 3']).toBe(2);
    expect(Object.entries(addCounts({}, { ['__proto__']: 1 }))).toEqual([['__proto__', 1]]);
    expect(addCounts({}, { constructor: 1 })).toEqual({ constructor: 1 });
  });
});

const four = Array.from({ length: 4 }, () => http(404));

it.each([
  ['is lost after five in a row that span confirm', [...four, http(404)], 15_000, true],
  ['is not lost after four, however long they last', four, 60_000, false],
  ['is not lost while the five span less than confirm', [...four, http(404)], 10_000, false],
  ['counts anew after another answer', [...four, http(503), ...four], 60_000, false],
] as const)('a job that answers 404 %s', (_, answers, everyMs, lost) => {
  expect(isLost(afterAll([...answers], everyMs), (answers.length - 1) * everyMs, 60_000)).toBe(lost);
});

it('trouble is a refused key at 401 and 403 only', () => {
  const refused = [401, 403, 404, 500].filter((status) => isUnauthorized(afterAll([http(status)], 1)));
  expect(refused).toEqual([401, 403]);
});
