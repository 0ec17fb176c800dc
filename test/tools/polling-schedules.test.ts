import { expect, it } from '@jest/globals';
import { OURS, simulate, TURNS_MS, pollTurn } from '../../tools/lib/polling-schedules';
import { seededRandom } from '../../sandbox/random';

it.each(TURNS_MS)(
  'the end of a turn of %i ms is seen within a tenth of the turn plus 1 s, in 95 of 100 turns',
  (turnMs) => {
    expect(simulate(OURS, turnMs).p95OfAllowed).toBeLessThanOrEqual(1);
  },
);

it('with the default polling, a turn of two hours needs at most 70 polls', () => {
  const polls = Array.from({ length: 500 }, (_, seed) => pollTurn(OURS, 7_200_000, seededRandom(seed)).polls);
  expect(Math.max(...polls)).toBeLessThanOrEqual(70);
});
