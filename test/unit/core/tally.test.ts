import { describe, expect, it } from '@jest/globals';
import type { JobAnswer } from '../../../src/core/activities';
import { needsDecision, NO_TROUBLE, startTally, tallied } from '../../../src/core/tally';

const known = { status: 'active', prLink: null, archivedAt: null };

function job(change: Partial<typeof known> | { prLink: string } = {}): JobAnswer {
  const rest = { id: 'j', source: { repository: null, ref: null }, model: null, createdAt: null };
  return { kind: 'job', job: { ...rest, ...known, ...change } };
}

function trouble(label: string, httpStatus?: number): JobAnswer {
  return { kind: 'trouble', label, message: label, ...(httpStatus === undefined ? {} : { httpStatus }) };
}

describe('an answer during a patience', () => {
  it.each([
    ['the job as it was', job(), false],
    ['another status', job({ status: 'completed' }), true],
    ['another link', job({ prLink: 'https://example.test/pull/1' }), true],
    ['a 401', trouble('http 401', 401), true],
    ['a 403', trouble('http 403', 403), true],
    ['a 404', trouble('http 404', 404), true],
    ['a 429', trouble('http 429', 429), false],
    ['a 503', trouble('http 503', 503), false],
    ['a time-out', trouble('timeout'), false],
  ] as const)('of %s is judged', (_, answer, expected) => {
    expect(needsDecision(answer, known)).toBe(expected);
  });
});

describe('a tally', () => {
  it('counts every answer, and remembers the trouble in a row', () => {
    const answers = [job(), trouble('http 503', 503), trouble('timeout'), job(), trouble('timeout')];
    const tally = answers.reduce((sum, answer) => tallied(sum, answer, 0), startTally(NO_TROUBLE));
    expect(tally).toMatchObject({
      polls: 5,
      observed: { active: 2, 'http 503': 1, timeout: 2 },
      trouble: { count: 1 },
      lastAnswer: 'timeout',
    });
  });

  it('begins with the trouble that the watch is in, so that its waits go on growing', () => {
    const first = tallied(startTally(NO_TROUBLE), trouble('timeout'), 0);
    expect(tallied(startTally(first.trouble), trouble('timeout'), 0).trouble.count).toBe(2);
  });
});
