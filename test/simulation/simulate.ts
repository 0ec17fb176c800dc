import { readdirSync } from 'node:fs';
import path from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { liesOfBatch } from './batch/oracle';
import type { BatchPlan } from './batch/plan';
import { BatchWorld } from './batch/world';
import { lies } from './oracle/lies';
import type { Plan } from './plan';
import { loadWorkflows } from './worker/workflow-code';
import { type Facts, World } from './world';

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

/** Plays a plan of a batch, once. */
export async function simulateBatch(plan: BatchPlan, workflows: ReusableVMWorkflowCreator) {
  const facts = await new BatchWorld(plan, workflows).play();
  return { plan, facts, lies: liesOfBatch(facts) };
}

/** One in so many worlds has its histories replayed as a whole, too: evictions replay the beginning of each. */
const WHOLE_REPLAYS = 4;

/**
 * Plays a plan twice, with workers that forget their workflows at other moments and a service that refuses in other words:
 * what happens must be the same. An oracle then compares all that is known with what the follow-up says.
 */
export async function simulate(plan: Plan, workflows: ReusableVMWorkflowCreator) {
  const facts = await new World(plan, workflows, 1).play(plan.seed % WHOLE_REPLAYS === 0);
  const again = await new World(plan, workflows, 2).play(false);
  return { plan, facts, lies: [...lies(facts), ...again.broken, ...differences(facts, again)] };
}

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
