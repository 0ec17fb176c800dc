import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { lies } from './oracle';
import type { Plan } from './plan';
import { loadWorkflows } from './worker/workflow-code';
import { type Facts, World } from './world';

export interface Verdict {
  readonly plan: Plan;
  readonly lies: readonly string[];
  readonly facts: Facts;
}

const PURE_MODULES = [
  'activities',
  'checks',
  'check-request',
  'cadence',
  'end',
  'errors',
  'evidence',
  'ids',
  'job',
  'metrics',
  'names',
  'request',
  'result',
  'starts',
  'tally',
  'text',
  'units',
  'batch/items',
  'batch/state',
];

/** The workflow bundle as a worker has it. */
export async function bundleWorkflows(): Promise<ReusableVMWorkflowCreator> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: require.resolve('../../src/workflows/index.ts'),
    logger: new DefaultLogger('WARN'),
    // Evaluated once for all workflows, and frozen: they are pure.
    preloadModules: [
      ...PURE_MODULES.map((name) => require.resolve(`../../src/core/${name}.ts`)),
      '@noble/hashes/sha2.js',
      '@noble/hashes/utils.js',
    ],
  });
  return loadWorkflows(code, [
    'getJob',
    'pollJob',
    'sendMessage',
    'workerSettings',
    'pendingDetails',
    'followUpResult',
    'takeTurn',
    'awaitEnd',
    'runItems',
    'closeChunks',
  ]);
}

/** One in so many worlds has its histories replayed as a whole, too: evictions replay the beginning of each. */
const WHOLE_REPLAYS = 4;

/**
 * Plays a plan twice, with workers that forget their workflows at other moments and a service that refuses in other words:
 * what happens must be the same. An oracle then compares all that is known with what the follow-up says.
 */
export async function simulate(plan: Plan, workflows: ReusableVMWorkflowCreator): Promise<Verdict> {
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
