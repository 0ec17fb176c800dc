import { beforeAll, expect, it } from '@jest/globals';
import { SCENARIO_RULES, SCENARIO_WORLDS } from './scenarios';
import { bundleWorkflows } from './simulate';

let workflows: Awaited<ReturnType<typeof bundleWorkflows>>;

beforeAll(async () => {
  workflows = await bundleWorkflows();
});

it.each(SCENARIO_RULES.map((rule, index) => [rule, index + 1] as const))('%s', async (_, number) => {
  const { violations } = await SCENARIO_WORLDS.play(SCENARIO_WORLDS.draw(number), workflows);
  expect(violations).toEqual([]);
});
