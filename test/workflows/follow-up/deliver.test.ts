import { expect, it } from '@jest/globals';
import type { PostOutcome } from '../../../src/core/wire';
import { JOB } from '../../harness/samples';
import { afterPost, NOT_SENT } from '../../../src/workflows/follow-up/state';

const words = { label: '', message: '' };
const OUTCOMES: Readonly<Record<string, PostOutcome>> = {
  accepted: { verdict: 'accepted', job: JOB },
  refused: { verdict: 'not-sent', repeatable: true, answered: false, ...words },
  limited: { verdict: 'not-sent', repeatable: true, answered: true, ...words },
  rejected: { verdict: 'rejected', ...words },
  unknown: { verdict: 'unknown', ...words },
};

it.each([
  ['refused', 'not-sent', null, 0],
  ['limited', 'not-sent', null, 1],
  ['unknown', 'unknown', null, 1],
  ['limited accepted', 'accepted', 'response', 2],
  ['unknown refused', 'unknown', null, 1],
  ['unknown rejected', 'unknown', null, 2],
])('the delivery after the POSTs %s is %s (by %s), with %d that may have arrived', (posts, ...expected) => {
  const outcomes = posts.split(' ').flatMap((post) => OUTCOMES[post] ?? []);
  const { verdict, confirmedBy, sends } = outcomes.reduce(afterPost, NOT_SENT);
  expect([verdict, confirmedBy, sends]).toEqual(expected);
});
