import { beforeAll, expect, it } from '@jest/globals';
import { BATCHES, bundleWorkflows, FOLLOW_UPS } from './simulate';

/** The first seed of each group. All groups take about ten seconds. `npm run simulate` plays more seeds. */
const GROUPS = [1, 13, 25, 37, 49, 61];

let workflows: Awaited<ReturnType<typeof bundleWorkflows>>;

beforeAll(async () => {
  workflows = await bundleWorkflows();
});

// Proves W1, W2, W3, W4, W5, W6, W7, W8, S1, S2, P1, P2, P3, P4, P5, P7, T1, T2, T3, T4, L1, L2, L3.
// Proves L4, A1, A4, A5, A6, A7, A8, A9, A10.
it.each(GROUPS)('twelve seeds from %i on satisfy the guarantees of a follow-up', async (from) => {
  for (let seed = from; seed < from + 12; seed += 1) {
    const { violations } = await FOLLOW_UPS.play(FOLLOW_UPS.draw(seed), workflows);
    // `npm run simulate -- --seeds SEED --log` prints the event log.
    expect({ seed, violations }).toEqual({ seed, violations: [] });
  }
});

// Proves B1, B2, B5, B6, B7, B8, B9, B10, B11, B12.
it('twenty seeds satisfy the guarantees of a batch', async () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const { violations } = await BATCHES.play(BATCHES.draw(seed), workflows);
    // `npm run simulate -- --batches SEED --log` prints the event log.
    expect({ seed, violations }).toEqual({ seed, violations: [] });
  }
});
