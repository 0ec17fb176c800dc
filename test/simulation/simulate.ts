import { readdirSync } from 'node:fs';
import path from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { liesOfBatch } from './batch/oracle';
import { type BatchPlan, drawBatchPlan } from './batch/plan';
import { SITUATIONS_OF_BATCHES } from './batch/situations';
import { type BatchFacts, BatchWorld } from './batch/world';
import { drawPlan } from './draw';
import { type Facts, FollowUpWorld } from './follow-up-world';
import { lies } from './oracle/lies';
import type { Plan, WorldPlan } from './plan';
import { SITUATIONS } from './situations';
import { loadWorkflows } from './worker/workflow-code';
import type { Entry } from './world';

const CORE = path.resolve(__dirname, '../../src/core');
const ACTIVITIES = [
  ...['getJob', 'pollJob', 'sendMessage', 'workerSettings', 'pendingDetails', 'followUpResult', 'takeTurn'],
  ...['awaitEnd', 'runItems', 'closeChunks'],
];

/** The workflow bundle as a worker has it. */
export async function bundleWorkflows(): Promise<ReusableVMWorkflowCreator> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: require.resolve('../../src/workflows/index.ts'),
    logger: new DefaultLogger('WARN'),
    // Evaluated once for all workflows, and frozen: they are pure.
    preloadModules: [
      ...readdirSync(CORE, { encoding: 'utf8', recursive: true })
        .filter((file) => file.endsWith('.ts'))
        .map((file) => path.join(CORE, file)),
      ...['@noble/hashes/sha2.js', '@noble/hashes/utils.js'],
    ],
  });
  return loadWorkflows(code, ACTIVITIES);
}

/** The situations of a kind of world, and whether one has met it. */
export type Situations<Facts> = Readonly<Record<string, (facts: Facts) => boolean>>;

/** What was played, and what is wrong with it. */
interface Played<Plan, Facts> {
  readonly plan: Plan;
  readonly facts: Facts;
  readonly lies: readonly string[];
}

/** A kind of world: how one is drawn from a seed and played. */
export interface Kind<Plan, Facts> {
  readonly draw: (seed: number) => Plan;
  readonly play: (plan: Plan, workflows: ReusableVMWorkflowCreator) => Promise<Played<Plan, Facts>>;
  readonly situations: Situations<Facts>;
}

/** One in so many worlds has its histories replayed as a whole, too: evictions replay the beginning of each. */
const WHOLE_REPLAYS = 4;

/**
 * A plan is played twice, with workers that forget their workflows at other moments and a service that refuses in other
 * words: what happens must be the same. An oracle then compares all that is known with what the follow-up says.
 */
export const FOLLOW_UPS: Kind<Plan, Facts> = {
  draw: drawPlan,
  play: async (plan, workflows) => {
    const facts = await new FollowUpWorld(plan, workflows, 1).play(plan.seed % WHOLE_REPLAYS === 0);
    const again = await new FollowUpWorld(plan, workflows, 2).play(false);
    return { plan, facts, lies: [...lies(facts), ...again.broken, ...differences(facts, again)] };
  },
  situations: SITUATIONS,
};

export const BATCHES: Kind<BatchPlan, BatchFacts> = {
  draw: drawBatchPlan,
  play: async (plan, workflows) => {
    const facts = await new BatchWorld(plan, workflows, 1).play();
    return { plan, facts, lies: liesOfBatch(facts) };
  },
  situations: SITUATIONS_OF_BATCHES,
};

function* differences(facts: Facts, again: Facts): Iterable<string> {
  const [one, other] = [facts, again].map(({ log, service, runs }) => [
    ...log.map((entry) => JSON.stringify(entry)),
    ...service.requests.map((request) => JSON.stringify(request)),
    ...runs.map(({ status, events }) => `${status} after ${events.length} events`),
  ]);
  const index = one?.findIndex((line, nth) => line !== other?.[nth]) ?? -1;
  if (index >= 0 || one?.length !== other?.length)
    yield `with other evictions and words: ${other?.[index] ?? 'more happens'}, and not ${one?.[index] ?? 'nothing'}`;
}

/** The smallest plan that still lies: without one thing that happens, all else is drawn as before. */
export async function smallest<P extends WorldPlan<unknown>, F>(
  liar: Played<P, F>,
  play: (plan: P) => Promise<Played<P, F>>,
): Promise<Played<P, F>> {
  for (const plan of smaller(liar.plan)) {
    const played = await play(plan);
    if (played.lies.length > 0) return smallest(played, play);
  }
  return liar;
}

function* smaller<P extends WorldPlan<unknown>>(plan: P): Iterable<P> {
  for (const index of plan.deeds.keys())
    yield { ...plan, deeds: plan.deeds.filter((_, nth) => nth !== index) };
  for (const [number, job] of plan.jobs.entries())
    for (const index of job.spells.keys()) {
      const spells = job.spells.filter((_, nth) => nth !== index);
      yield { ...plan, jobs: plan.jobs.with(number, { ...job, spells }) };
    }
}

/** A world in words: how it was planned, what has happened, and what is wrong. */
export function storyOf({
  plan,
  facts,
  lies,
}: Played<WorldPlan<unknown>, { readonly log: readonly Entry[] }>): string {
  return [
    `\nseed ${plan.seed}: ${JSON.stringify({ ...plan, seed: undefined })}`,
    ...facts.log.map(
      ({ at, who, what }) => `${(at / 1_000).toFixed(3).padStart(12)}  ${who.padEnd(9)} ${what}`,
    ),
    ...lies.map((lie) => `LIE: ${lie}`),
  ].join('\n');
}
