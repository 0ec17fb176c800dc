import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { bundleCode } from '../../src/worker/bundle';
import { liesOfBatch } from './batch/oracle';
import { type BatchPlan, drawBatchPlan } from './batch/plan';
import { SITUATIONS_OF_BATCHES } from './batch/situations';
import { BatchWorld } from './batch/world';
import { drawPlan } from './draw';
import { FollowUpWorld } from './follow-up-world';
import { lies } from './oracle/lies';
import type { Plan, WorldPlan } from './plan';
import { SITUATIONS } from './situations';
import { loadWorkflows } from './worker/workflow-code';
import type { Entry } from './world';

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
  readonly lies: readonly string[];
}

export interface Told<Plan = WorldPlan<unknown>> {
  readonly plan: Plan;
  readonly log: readonly Entry[];
}

/** A kind of world: how one is drawn from a seed and played. */
export interface Kind<Plan, World extends Told<Plan>> {
  readonly draw: (seed: number) => Plan;
  readonly play: (plan: Plan, workflows: ReusableVMWorkflowCreator) => Promise<Played<World>>;
  readonly situations: Situations<World>;
}

/**
 * A plan is played twice: once by workers that forget their workflows at random moments, and once by workers that forget
 * none, with a service that refuses in other words. What happens must be the same. An oracle then compares all that is
 * known with what the follow-up says.
 */
export const FOLLOW_UPS: Kind<Plan, FollowUpWorld> = {
  draw: drawPlan,
  play: async (plan, workflows) => {
    const world = await new FollowUpWorld(plan, workflows).play();
    const again = await new FollowUpWorld(plan, workflows, true).play();
    return { world, lies: [...lies(world), ...again.broken, ...differences(world, again)] };
  },
  situations: SITUATIONS,
};

export const BATCHES: Kind<BatchPlan, BatchWorld> = {
  draw: drawBatchPlan,
  play: async (plan, workflows) => {
    const world = await (await BatchWorld.of(plan, workflows)).play();
    return { world, lies: liesOfBatch(world) };
  },
  situations: SITUATIONS_OF_BATCHES,
};

function differences(...worlds: readonly [FollowUpWorld, FollowUpWorld]): string[] {
  const [one, other] = worlds.map(({ log, service, runs }) => [
    ...[...log, ...service.requests].map((each) => JSON.stringify(each)),
    ...runs.map(({ status, events }) => `${status} after ${events.length} events`),
    'nothing more',
  ]);
  const index = one?.findIndex((line, nth) => line !== other?.[nth]) ?? -1;
  return index < 0 ? [] : [`in the second play: ${other?.[index]}, and not ${one?.[index]}`];
}

/** The smallest plan that still lies: without one thing that happens, all else is drawn as before. */
export async function smallest<Plan extends WorldPlan<unknown>, World extends Told<Plan>>(
  liar: Played<World>,
  play: (plan: Plan) => Promise<Played<World>>,
): Promise<Played<World>> {
  for (const plan of smaller(liar.world.plan)) {
    const played = await play(plan);
    if (played.lies.length > 0) return smallest(played, play);
  }
  return liar;
}

function* smaller<Plan extends WorldPlan<unknown>>(plan: Plan): Iterable<Plan> {
  for (const index of plan.deeds.keys()) yield { ...plan, deeds: plan.deeds.toSpliced(index, 1) };
  for (const [number, job] of plan.jobs.entries())
    for (const index of job.spells.keys())
      yield { ...plan, jobs: plan.jobs.with(number, { ...job, spells: job.spells.toSpliced(index, 1) }) };
}

/** A world in words: how it was planned, what has happened, and what is wrong. */
export function storyOf({ world: { plan, log }, lies }: Played<Told>): string {
  return [
    `\nseed ${plan.seed}: ${JSON.stringify({ ...plan, seed: undefined })}`,
    ...log.map(({ at, who, what }) => `${(at / 1_000).toFixed(3).padStart(12)}  ${who.padEnd(9)} ${what}`),
    ...lies.map((lie) => `LIE: ${lie}`),
  ].join('\n');
}
