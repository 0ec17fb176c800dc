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

/** Loads the same workflow bundle that a worker runs. */
export async function bundleWorkflows(): Promise<ReusableVMWorkflowCreator> {
  return loadWorkflows(await bundleCode(), ACTIVITIES);
}

/** For each situation, by its name, a function that returns whether it occurred in a played world. */
export type Situations<World> = Readonly<Record<string, (world: World) => boolean>>;

/** A played world, and its violations of guarantees as sentences. */
interface Played<World> {
  readonly world: World;
  readonly violations: readonly string[];
}

export interface WorldResult<Plan = WorldPlan<unknown>> {
  readonly plan: Plan;
  readonly log: readonly LogEntry[];
}

/** A kind of world: a follow-up or a batch. `draw` makes the plan of a seed, and `play` plays a plan. */
export interface WorldKind<Plan, World extends WorldResult<Plan>> {
  readonly draw: (seed: number) => Plan;
  readonly play: (plan: Plan, workflows: ReusableVMWorkflowCreator) => Promise<Played<World>>;
  readonly situations: Situations<World>;
}

/**
 * Worlds of one follow-up. Each plan is played twice. The first time, workers evict workflows from their cache at random moments;
 * the second time, they evict none, and the agent service uses other error texts. Both plays must have the same events. The oracle
 * then compares everything that the simulation knows with the progress and the result of the follow-up.
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

/** Worlds of one batch. Each plan is played once. */
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
    'no further event',
  ]);
  const index = one?.findIndex((line, nth) => line !== other?.[nth]) ?? -1;
  return index < 0
    ? []
    : [`the second play differs: ${other?.[index]}, but the first play has ${one?.[index]}`];
}

/**
 * Removes operations and faults from a violating plan, one at a time, as long as the smaller plan still violates a guarantee. All other
 * random values stay the same, because each of them has its own sequence.
 */
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

/** Formats the plan, the event log and the violations of a world. */
export function formatEventLog({ world: { plan, log }, violations }: Played<WorldResult>): string {
  return [
    `\nseed ${plan.seed}: ${JSON.stringify({ ...plan, seed: undefined })}`,
    ...log.map(({ at, who, what }) => `${(at / 1_000).toFixed(3).padStart(12)}  ${who.padEnd(9)} ${what}`),
    ...violations.map((violation) => `VIOLATION: ${violation}`),
  ].join('\n');
}
