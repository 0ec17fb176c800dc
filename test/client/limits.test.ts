import { describe, expect, it } from '@jest/globals';
import { InvalidRequestError } from '../../src/client';
import { checkLimits } from '../../src/client/limits';
import { problemText } from '../../src/core/checks';
import { fairnessKey } from '../../src/core/ids';

function problemsOf(change: object): readonly string[] {
  try {
    checkLimits(change);
  } catch (error) {
    if (error instanceof InvalidRequestError) return error.problems.map((problem) => problemText(problem));
    throw error;
  }
  return [];
}

describe('a change of limits', () => {
  it('is told apart by kind of request; what is left out stays as it is', () => {
    const same = {
      ...{ updateQueueRateLimit: null, updateFairnessKeyRateLimitDefault: null },
      ...{ setFairnessWeightOverrides: {}, unsetFairnessWeightOverrides: [] },
    };
    expect(checkLimits({ sendsPerProject: '90/h', readsTotal: 'off' })).toEqual({
      sends: { ...same, updateFairnessKeyRateLimitDefault: { rateLimit: { requestsPerSecond: 0.025 } } },
      reads: { ...same, updateQueueRateLimit: { rateLimit: null } },
    });
    expect(checkLimits({ sendsTotal: '5/s' }).reads).toEqual(same);
  });

  it('sets a weight for both kinds, by fairness key', () => {
    const long = 'p'.repeat(100);
    const { sends, reads } = checkLimits({ projectWeights: { docs: 3, [long]: 0.5, site: 'off' } });
    expect(sends).toMatchObject({
      setFairnessWeightOverrides: { docs: 3, [fairnessKey(long)]: 0.5 },
      unsetFairnessWeightOverrides: ['site'],
    });
    expect(reads).toEqual(sends);
  });

  it('has every problem named before anything is changed', () => {
    const problems = problemsOf({
      sendsPerProject: '90',
      readsPerProject: '0/s',
      sendsTotal: 5,
      projectWeights: { '': 1, docs: 0, site: 1_001, wiki: '3', 'a\nb': 2, blog: Number.NaN },
    });
    const wanted = [
      /^sendsPerProject: .*needs a unit/,
      /^readsPerProject: .*too low/,
      /^sendsTotal: .*needs a unit/,
      /^projectWeights.: .*must not be empty/,
      /^projectWeights.docs: .*from 0.001 to 1000, or off; it is 0/,
      /^projectWeights.site: .*it is 1001/,
      /^projectWeights.wiki: .*it is "3"/,
      /^projectWeights.a b: .*control characters/,
      /^projectWeights.blog: .*must be a number/,
    ];
    expect(problems).toEqual(expect.arrayContaining(wanted.map((each) => expect.stringMatching(each))));
    expect(problems).toHaveLength(wanted.length);
  });

  it.each([
    [{ sendsTotal: '5/s', readTotal: '1/s' }, 'readTotal: is not an option here; the options are '],
    [null, 'limits: must be an object, not null'],
    [{}, 'no change given'],
    [{ projectWeights: {} }, 'no change given'],
  ])('%j is refused by its name', (change, words) => {
    expect(problemsOf(change as object)).toEqual([expect.stringContaining(words)]);
  });
});
