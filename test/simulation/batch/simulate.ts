import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { liesOfBatch } from './oracle';
import type { BatchPlan } from './plan';
import { type BatchFacts, BatchWorld } from './world';

export interface BatchVerdict {
  readonly plan: BatchPlan;
  readonly facts: BatchFacts;
  readonly lies: readonly string[];
}

/** Plays a plan, and compares all that is known with what was promised. */
export async function simulateBatch(
  plan: BatchPlan,
  workflows: ReusableVMWorkflowCreator,
): Promise<BatchVerdict> {
  const facts = await new BatchWorld(plan, workflows).play();
  return { plan, facts, lies: liesOfBatch(facts) };
}

/** The smallest plan that still lies: deeds are taken away, one after the other, as long as something is wrong. */
export async function shrinkBatch(
  verdict: BatchVerdict,
  workflows: ReusableVMWorkflowCreator,
): Promise<BatchVerdict> {
  let smallest = verdict;
  for (let index = verdict.plan.deeds.length - 1; index >= 0; index -= 1) {
    const { plan } = smallest;
    const deeds = plan.deeds.filter((_, each) => each !== index);
    const smaller = await simulateBatch({ ...plan, deeds }, workflows);
    if (smaller.lies.length > 0) smallest = smaller;
  }
  return smallest;
}
