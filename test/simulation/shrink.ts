import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import type { Plan } from './plan';
import { simulate } from './simulate';

/**
 * The smallest plan that still lies: deeds and troubles are taken away, one after the other, as long as something is wrong.
 * What is drawn for the rest stays the same.
 */
export async function shrink(plan: Plan, workflows: ReusableVMWorkflowCreator): Promise<Plan> {
  let smallest = plan;
  for (const part of ['deeds', 'spells'] as const)
    for (let index = smallest[part].length - 1; index >= 0; index -= 1) {
      const smaller = { ...smallest, [part]: smallest[part].filter((_, each) => each !== index) };
      if ((await simulate(smaller, workflows)).lies.length > 0) smallest = smaller;
    }
  return smallest;
}
