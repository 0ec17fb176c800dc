import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { bundleCode } from '../../src/worker/bundle';
import { findBatchViolations } from './batch/oracle';
import { type BatchPlan, drawBatchPlan } from './batch/plan';
import { BATCH_SITUATIONS } from './batch/situations';
import { BatchWorld } from './batch/world';
import { drawPlan } from './draw-plan';
import { FollowUpWorld } from './follow-up-world';
import { findViolations } from './oracle/violations';
import type { Plan, WorldPlan } from './plan';
import { SITUATIONS } from './situations';
import { loadWorkflows } from './worker/workflow-code';
import type { LogEntry } from './world';

const ACTIVITIES = [
  ...['workerSettings', 'getJob', 'pollJob', 'countPollReads', 'sendMessage', 'stopSend', 'waitForJobLock'],
  ...['releaseJobLock', 'followUpResult', 'runItems', 'closeChunks'],
];

/** The workflow bundle as a worker has it. */
export async function bundleWorkflows(): Promise<ReusableVMWorkflowCreator> {
  return loadWorkflows(await bundleCode(), ACTIVITIES);
}

/** The situations of a kind of world, and whether one has met it. */
export type Situations<World> = Readonly<Record<string, (world: World) => boolean>>;

/** What was played, and what is wrong with it. */
interface Played<World> {
  readonly world: World;
  readonly violations: readonly string[];
}

export interface WorldResult<Plan = WorldPlan<unknown>> {
  readonly plan: Plan;
  readonly log: readonly LogEntry[];
}

/** A kind of world: how one is drawn from a seed and played. */
export interface WorldKind<Plan, World extends WorldResult<Plan>> {
  readonly draw: (seed: number) => Plan;
  readonly play: (plan: Plan, workflows: ReusableVMWorkflowCreator) => Promise<Played<World>>;
  readonly situations: Situations<World>;
}

/**
 * A plan is played twice: once by workers that forget their workflows at random moments, and once by workers that forget
 * none, with a service that refuses in other words. What happens must be the same. An oracle then compares all that is
 * known with what the follow-up says.
 */
export const FOLLOW_UPS: WorldKind<Plan, FollowUpWorld> = {
  draw: drawPlan,
  play: async (plan, workflows) => {
    const world = await new FollowUpWorld(plan, workflows).play();
    const secondWorld = await new FollowUpWorld(plan, workflows, true).play();
    return {
      world,
      violations: [...findViolations(world), ...secondWorld.failures, ...findDifferences(world, secondWorld)],
    };
  },
  situations: SITUATIONS,
};

export const BATCHES: WorldKind<BatchPlan, BatchWorld> = {
  draw: drawBatchPlan,
  play: async (plan, workflows) => {
    const world = await (await BatchWorld.create(plan, workflows)).play();
    return { world, violations: findBatchViolations(world) };
  },
  situations: BATCH_SITUATIONS,
};

function findDifferences(...worlds: readonly [FollowUpWorld, FollowUpWorld]): string[] {
  const [one, other] = worlds.map(({ log, service, runs }) => [
    ...[...log, ...service.requests].map((each) => JSON.stringify(each)),
    ...runs.map(({ status, events }) => `${status} after ${events.length} events`),
    'nothing more',
  ]);
  const index = one?.findIndex((line, nth) => line !== other?.[nth]) ?? -1;
  return index < 0 ? [] : [`in the second play: ${other?.[index]}, and not ${one?.[index]}`];
}

/** Returns the smallest plan that still violates a guarantee. Without one thing that happens, all else is drawn as before. */
export async function shrink<Plan extends WorldPlan<unknown>, World extends WorldResult<Plan>>(
  violating: Played<World>,
  play: (plan: Plan) => Promise<Played<World>>,
): Promise<Played<World>> {
  for (const plan of smallerPlans(violating.world.plan)) {
    const played = await play(plan);
    if (played.violations.length > 0) return shrink(played, play);
  }
  return violating;
}

function* smallerPlans<Plan extends WorldPlan<unknown>>(plan: Plan): Iterable<Plan> {
  for (const index of plan.operations.keys())
    yield { ...plan, operations: plan.operations.toSpliced(index, 1) };
  for (const [number, job] of plan.jobs.entries())
    for (const index of job.faults.keys())
      yield { ...plan, jobs: plan.jobs.with(number, { ...job, faults: job.faults.toSpliced(index, 1) }) };
}

/** A world in words: how it was planned, what has happened, and what is wrong. */
export function formatEventLog({ world: { plan, log }, violations }: Played<WorldResult>): string {
  return [
    `\nseed ${plan.seed}: ${JSON.stringify({ ...plan, seed: undefined })}`,
    ...log.map(({ at, who, what }) => `${(at / 1_000).toFixed(3).padStart(12)}  ${who.padEnd(9)} ${what}`),
    ...violations.map((violation) => `VIOLATION: ${violation}`),
  ].join('\n');
}
