import { expect, it } from '@jest/globals';
import { OURS, simulate, TURNS_MS, pollTurn } from '../../tools/lib/polling-schedules';
import { seededRandom } from '../../sandbox/random';

it.each(TURNS_MS)('a turn of %i ms is seen to end within a tenth of it and 1 s, in 95 of 100', (turnMs) => {
  expect(simulate(OURS, turnMs).p95OfAllowed).toBeLessThanOrEqual(1);
});

it('the defaults of polling watch a turn of two hours with at most 70 polls', () => {
  const polls = Array.from({ length: 500 }, (_, seed) => pollTurn(OURS, 7_200_000, seededRandom(seed)).polls);
  expect(Math.max(...polls)).toBeLessThanOrEqual(70);
});
