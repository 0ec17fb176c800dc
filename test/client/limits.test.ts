import { expect, it } from '@jest/globals';
import { checkLimits } from '../../src/client/limits';
import { fairnessKey } from '../../src/core/ids';

it('the weight of a project is set by its fairness key', () => {
  const long = 'p'.repeat(100);
  const { sends, reads } = checkLimits({ projectWeights: { docs: 3, [long]: 0.5 } });
  expect(sends.setFairnessWeightOverrides).toEqual({ docs: 3, [fairnessKey(long)]: 0.5 });
  expect(reads).toEqual(sends);
});

it.each<[unknown, readonly string[]]>([
  [
    { sendsPerProject: '90', readsPerProject: '0/s', sendsTotal: 5 },
    ['sendsTotal: .*needs a unit', 'sendsPerProject: .*needs a unit', 'readsPerProject: .*too low'],
  ],
  [
    { projectWeights: { '': 1, docs: 0, site: 1_001, wiki: '3', 'a\nb': 2, blog: Number.NaN } },
    [
      'projectWeights.: .*must not be empty',
      'projectWeights.docs: .*from 0.001 to 1000, or off; it is 0',
      'projectWeights.site: .*it is 1001',
      'projectWeights.wiki: .*it is "3"',
      'projectWeights.a b: .*control characters',
      'projectWeights.blog: .*must be a number',
    ],
  ],
  [{ sendsTotal: '5/s', readTotal: '1/s' }, ['readTotal: is not an option here; the options are ']],
  [null, ['limits: must be an object, not null']],
  [{ projectWeights: {} }, ['no change given']],
])('a change of limits is refused with every problem: %j', (change, problems) => {
  expect(() => checkLimits(change as object)).toThrow(new RegExp(problems.join('.*; ')));
});
