import { beforeAll, expect, it } from '@jest/globals';
import { bundleWorkflows } from '../simulate';
import { drawBatchPlan } from './plan';
import { simulateBatch } from './simulate';

/** Some seconds' worth. `npm run simulate -- --batches` plays as many as one likes. */
const SEEDS = Array.from({ length: 20 }, (_, index) => index + 1);

let workflows: Awaited<ReturnType<typeof bundleWorkflows>>;

beforeAll(async () => {
  workflows = await bundleWorkflows();
}, 120_000);

it('every seed keeps what is promised of a batch', async () => {
  for (const seed of SEEDS) {
    const { lies } = await simulateBatch(drawBatchPlan(seed), workflows);
    // `npm run simulate -- --batches SEED --story` tells the story.
    expect({ seed, lies }).toEqual({ seed, lies: [] });
  }
}, 120_000);
