import type { RandomSource } from '../random-source';
import type { PlannedJob, Fault } from '../plan';
import type { BatchOperation, PlannedBatchOperation, BatchPlan } from './plan';

const REJECTED: Fault = {
  ...{ method: 'post', after: 0, count: 1, isIntermittent: false },
  effect: { kind: 'status', status: 422, processed: false },
};

/** The first turn is longer than a pause, an attempt of the batch and the lag of the visibility list together. */
const TURNS = [400_000, 5_000, 5_000].map((durationMs) => ({ durationMs, outcome: 'no-change' as const }));
const SHORT_TURNS = TURNS.slice(1);

/** The number of items, which is small so that a scenario ends soon. */
const ITEMS = 8;

function idleJob(job: PlannedJob, turns = TURNS, faults: readonly Fault[] = []): PlannedJob {
  return { ...job, status: 'completed', turns, faults };
}

function planOperation(at: string, afterMs: number, operation: BatchOperation): PlannedBatchOperation {
  return { at, nth: 1, afterMs, operation };
}
const atStart = (afterMs: number, operation: BatchOperation) => planOperation('started', afterMs, operation);
const atItemEnd = (afterMs: number, operation: BatchOperation) =>
  planOperation('item ended', afterMs, operation);
const withPermission = (afterMs: number, operation: BatchOperation) =>
  planOperation('board recorded', afterMs, operation);

/**
 * A plan in which the first `sameJobCount` items are for one job, and the agent service rejects the first message. The first item is the
 * first one that ends, because all turns are long.
 */
function rejectedFirstItem(plan: BatchPlan, sameJobCount: number, ...operations: PlannedBatchOperation[]) {
  return {
    jobs: plan.jobs.map((job, nth) => idleJob(job, TURNS, nth === 0 ? [REJECTED] : [])),
    items: plan.items.slice(0, ITEMS).map((item, nth) => (nth < sameJobCount ? { ...item, job: 0 } : item)),
    request: { ...plan.request, deadline: '20m' },
    maxFailures: null,
    operations: [...plan.operations.slice(0, 1), ...operations],
  };
}

/** Combinations of operations that independently drawn operations hardly ever make. */
export const SCENARIOS: readonly ((plan: BatchPlan, random: RandomSource) => Partial<BatchPlan>)[] = [
  // The batch attaches to a follow-up of another client, and is cancelled with its running items.
  ({ operations }, random) => ({
    operations: [
      ...operations,
      atStart(0, { kind: 'foreign', item: random.next('item'), samePrompt: true }),
      atStart(random.between('then', 1, 12_000), { kind: 'cancel', cancelRunning: true }),
    ],
  }),
  // A client retries an item while the batch is paused, so that the item's job is busy and the item counts for the concurrency.
  (plan, random) => ({
    ...rejectedFirstItem(
      plan,
      3,
      atItemEnd(0, { kind: 'pause', ms: 130_000 }),
      atItemEnd(1_000, { kind: 'retry item', item: 0 }),
    ),
    concurrency: random.pick('places', [2, 10, 10]),
  }),
  // A retry of the batch finds that later items already run, and that they use the whole concurrency.
  (plan, random) => ({
    ...rejectedFirstItem(
      plan,
      1,
      atItemEnd(0, { kind: 'set concurrency', concurrency: 1 }),
      atItemEnd(random.between('then', 2_000, 20_000), { kind: 'cancel', cancelRunning: false }),
      planOperation('batch ended', 0, { kind: 'retry', includeUnknown: false }),
    ),
    concurrency: random.between('places', 2, 4),
  }),
  // Two clients retry one item, and the run of the first retry ends before the second start.
  (plan, random) => {
    const times = [0, random.between('then', 1, 1_000)];
    const scenario = rejectedFirstItem(
      plan,
      1,
      ...times.map((ms) => atItemEnd(ms, { kind: 'retry item', item: 0 })),
    );
    const lost: Fault = { ...REJECTED, after: 1, count: 3, effect: { kind: 'reset', processed: true } };
    const jobs = scenario.jobs.map((job, nth) => (nth === 0 ? { ...job, faults: [REJECTED, lost] } : job));
    const request = { maxStaleness: '0s', reconcileTimeout: '0s', onUnknownDelivery: 'fail' } as const;
    return { ...scenario, jobs, request: { ...plan.request, ...request }, paceMs: 8_000 };
  },
  // An ended item is older than the retention, and the history of a reset batch does not have the item.
  ({ jobs, items, operations }, random) => ({
    jobs: jobs.map((job, nth) => idleJob(job, nth === 0 ? SHORT_TURNS : TURNS)),
    items: items.slice(0, ITEMS),
    retentionMs: 120_000,
    operations: [
      ...operations.slice(0, 1),
      atItemEnd(150_000, { kind: 'reset', share: random.next('share') / 2 }),
    ],
  }),
  // A worker is frozen with a permission when its run is terminated, and then starts items during the next run, which has a lower
  // concurrency. These items are older than the retention before the next run reaches them.
  ({ jobs: [first], operations }, random) => ({
    jobs: [1, 2, 3].flatMap((nth) =>
      first ? [idleJob({ ...first, jobId: `job-${nth}` }, nth === 1 ? TURNS : SHORT_TURNS)] : [],
    ),
    items: [0, 1, 2].map((job) => ({ job, prompt: `Message ${job + 1}.` })),
    ...{ concurrency: 10, maxFailures: null, workers: 2, retentionMs: 120_000 },
    operations: [
      ...operations.slice(0, 1),
      withPermission(0, { kind: 'freeze', ms: 8_000, suspended: false }),
      withPermission(1, { kind: 'set concurrency', concurrency: 1 }),
      withPermission(random.between('then', 500, 3_000), { kind: 'terminate', startsAfterMs: 0 }),
    ],
  }),
];
