import { describe, expect, it } from '@jest/globals';
import { countedIn, mayBePolling } from '../../../src/client/progress';
import type { FollowUpProgress } from '../../../src/core/result';

const TALLY = {
  polls: 3,
  observed: { active: 2, 'http 503': 1 },
  trouble: { last: null, count: 0, notFound: null },
  lastAnswer: 'active',
  nextReadAt: 1_900_000_000_000,
};

describe('heartbeat details', () => {
  it('that are a tally tell the counts and the last answer', () => {
    const { polls, observed, lastAnswer, nextReadAt } = TALLY;
    expect(countedIn(TALLY)).toEqual({ polls, observed, lastAnswer, nextReadAt });
  });

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'three polls'],
    ['an array', [TALLY]],
    ['no polls', { ...TALLY, polls: undefined }],
    ['polls in a text', { ...TALLY, polls: '3' }],
    ['a part of a poll', { ...TALLY, polls: 2.5 }],
    ['fewer polls than none', { ...TALLY, polls: -1 }],
    ['endless polls', { ...TALLY, polls: Infinity }],
    ['no counts', { ...TALLY, observed: null }],
    ['a count in a text', { ...TALLY, observed: { active: '3' } }],
    ['a negative count', { ...TALLY, observed: { active: -1 } }],
    [
      'more names than a tally has',
      {
        ...TALLY,
        observed: Object.fromEntries(Array.from({ length: 34 }, (_, index) => [`word ${index}`, 1])),
      },
    ],
  ])('that are %s tell nothing', (_, details) => {
    expect(countedIn(details)).toBeNull();
  });

  it('take as many names as a tally has', () => {
    const observed = Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`word ${index}`, 1]));
    expect(countedIn({ ...TALLY, polls: 33, observed })?.observed).toEqual(observed);
  });

  it('are cut to the length of a status and of an answer', () => {
    const counted = countedIn({
      ...TALLY,
      observed: { ['x'.repeat(100_000)]: 3 },
      lastAnswer: 'y'.repeat(100_000),
    });
    expect(Object.keys(counted?.observed ?? {})[0]).toHaveLength(64);
    expect(counted?.lastAnswer?.length).toBeLessThanOrEqual(2_048);
  });

  it('with an answer that is no text have none', () => {
    expect(countedIn({ ...TALLY, lastAnswer: { toString: 'active' } })).toMatchObject({ lastAnswer: null });
  });
});

describe('the server is asked for a pending read', () => {
  const progress = { phase: 'watching', nextPollAt: null } as FollowUpProgress;

  it.each(['waiting', 'watching', 'needs-decision'] as const)('while %s without a timer', (phase) => {
    expect(mayBePolling({ ...progress, phase })).toBe(true);
  });

  it.each(['baseline', 'sending', 'reconciling', 'confirming', 'settling', 'unauthorized', 'done'] as const)(
    'not while %s',
    (phase) => {
      expect(mayBePolling({ ...progress, phase })).toBe(false);
    },
  );

  it('not while a timer waits for the next read', () => {
    expect(mayBePolling({ ...progress, nextPollAt: '2030-01-01T00:00:00.000Z' })).toBe(false);
  });
});
