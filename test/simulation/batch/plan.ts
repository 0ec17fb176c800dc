import type { RunOptions } from '../../../src/client/batch/check';
import type { MaxFailures } from '../../../src/batch/items';
import { RandomSource, weighted } from '../random-source';
import { type OperationOf, withDuration, MACHINE_OPERATIONS, withoutDetails } from '../operations';
import type { PlannedOperation, PlannedJob, Fault, WorldPlan } from '../plan';
import { SCENARIOS } from './scenarios';

/** The plan of one batch. */
export interface BatchPlan extends WorldPlan<BatchOperation> {
  /** The items in file order. */
  readonly items: readonly PlannedItem[];
  readonly concurrency: number;
  readonly maxFailures: MaxFailures;
  /** The size of a chunk in bytes; null if the items are in the workflow's input. */
  readonly partBytes: number | null;
  /** The maximum lag of the visibility list. */
  readonly listLagMs: number;
  /** The maximum duration of each direction of a client's slow call. */
  readonly paceMs: number;
  /** The retention of closed workflows; null if they are kept indefinitely. */
  readonly retentionMs: number | null;
  /** Whether a client starts an incomplete batch again, without `maxFailures`, after all workflows have ended. */
  readonly isRestartedUntilDone: boolean;
}

interface PlannedItem {
  /** The index of the job in `jobs`. */
  readonly job: number;
  readonly prompt: string;
  /** The request ID, if the caller gives one. */
  readonly requestId?: string;
}

const withItem = (random: RandomSource) => ({ item: random.next('item') });

/** All operations of worlds with a batch. `item` is the position of the item in the file, from 0 to 1. */
const BATCH_OPERATIONS = {
  ...MACHINE_OPERATIONS,
  'wrong clock': (random: RandomSource): { ms: number } => ({
    ms: random.pick('clock', [-60_000, -2_000, 2_000, 60_000]),
  }),
  /** A client starts the batch with the same file: the start attaches to the batch, or continues it. */
  start: (random: RandomSource): { times: number; options: RunOptions } => ({
    times: random.pick('times', [1, 2]),
    options: {},
  }),
  terminate: (random: RandomSource, ms: number) => ({
    startsAfterMs: random.pick('starts', [null, 0, 0, ms]),
  }),
  cancel: (random: RandomSource) => ({ cancelRunning: random.chance('with them', 0.5) }),
  pause: withDuration,
  'set concurrency': (random: RandomSource) => ({ concurrency: random.between('new concurrency', 1, 20, 2) }),
  reset: (random: RandomSource) => ({ share: random.next('share') }),
  retry: (random: RandomSource) => ({ includeUnknown: random.chance('include', 0.4) }),
  results: withoutDetails,
  /** The simulation resumes a batch that stays paused. No plan has this operation. */
  resume: withoutDetails,
  ...{ 'retry item': withItem, 'delete item': withItem },
  ...{ 'cancel item': withItem, 'terminate item': withItem },
  /** Another client starts a follow-up with the request ID of an item. */
  foreign: (random: RandomSource) => ({ item: random.next('item'), samePrompt: random.chance('same', 0.5) }),
};
export type BatchOperation = OperationOf<typeof BATCH_OPERATIONS>;
export type PlannedBatchOperation = PlannedOperation<BatchOperation>;

/** Draws the plan of a seed. Many plans have few operations. */
export function drawBatchPlan(seed: number): BatchPlan {
  const random = new RandomSource(seed * 6_311 + 3);
  const most = random.pick('size', [3, 6, 6, 12, 12, 12, 30, random.pick('large', [60, 100, 200])]);
  const count = random.between('items', 1, most);
  const projects = random.between('projects', 1, 3);
  const jobs = Array.from({ length: random.between('jobs', 1, count) }, (_, nth) =>
    drawJob(random, nth, random.between('project', 1, projects)),
  );
  const named = random.pick('named', [0, 0, 0.3, 1]);
  const items = Array.from({ length: count }, (_, nth) => ({
    job: random.between('job', 0, jobs.length - 1, random.pick('spread', [1, 2])),
    // Some items have the same message.
    prompt: random.chance('same prompt', 0.2) ? 'The same message.' : `Message ${nth + 1}.`,
    ...(random.chance('is named', named) ? { requestId: `order-${nth + 1}` } : {}),
  }));
  const plan: BatchPlan = {
    ...{ seed, jobs, items },
    request: {
      whenActive: random.pick('whenActive', ['send', 'send', 'wait']),
      ...{ maxStaleness: '1s', prLinkTimeout: '0s', reconcileTimeout: '10s' },
      deadline: random.pick('deadline', ['5m', '20m', '20m']),
      onUnknownDelivery: random.pick('unknown', ['fail', 'fail', 'ask', 'assume-delivered']),
      polling: { initial: random.pick('initial', ['1s', '5s', '30s']) },
    },
    concurrency: random.between('concurrency', 1, 20, 2),
    maxFailures: random.pick('maxFailures', [
      null,
      null,
      null,
      { items: random.between('few', 0, 2) },
      { percent: 30 },
    ]),
    partBytes: random.pick('parts', [null, null, 300, 1_000]),
    workers: random.pick('workers', [1, 1, 2, 3]),
    suggestFrom: random.pick('suggestFrom', [30, 60, 4_096]),
    listLagMs: random.pick('lag', [0, 1_000, 5_000]),
    paceMs: 60,
    retentionMs: random.pick('retention', [null, null, null, null, 120_000, 600_000]),
    operations: Array.from({ length: random.between('deeds', 0, 7, 1.3) }, () =>
      drawOperations(random),
    ).flat(),
    isRestartedUntilDone: random.chance('finishes', 0.5),
  };
  return random.chance('uses a scenario', 0.15)
    ? { ...plan, ...random.pick('story', SCENARIOS)(plan, random) }
    : plan;
}

function drawJob(random: RandomSource, nth: number, project: number): PlannedJob {
  const duration = random.pick('turns', [500, 5_000, 20_000, 20_000, 120_000]);
  const turn = (each: number) => ({
    durationMs: random.between(`turn ${each}`, 50, duration),
    outcome: random.pick('outcome', weighted('pull-request, no-change, new-pull-request, failed')),
  });
  const post = { method: 'post', after: random.pick('after', [0, 0, 1, 2]) } as const;
  const processed = random.chance('processed', 0.5);
  const kind = random.pick('spell', weighted('8 none, 404, 3 422, 500, reset, 429'));
  const faults: Fault[] = [];
  if (kind !== 'none')
    faults.push({
      ...(kind === '404' ? { method: 'get', after: 0 } : post),
      count: kind === '404' ? Infinity : kind === 'reset' ? 1 : random.pick('count', [1, 1, 3]),
      isIntermittent: false,
      effect:
        kind === 'reset'
          ? { kind, processed }
          : {
              ...{ kind: 'status', status: Number(kind), processed: kind === '500' && processed },
              ...(kind === '429' && { retryAfter: random.pick('retryAfter', [undefined, '60', '60']) }),
            },
    });
  return {
    ...{ projectId: `project-${project}`, jobId: `job-${nth + 1}`, faults },
    status: random.pick('status', weighted('3 completed, failed, active, archived')),
    ...{ hasLink: random.chance('link', 0.4), activeMs: 20_000, lagMs: 0, linkLateMs: 0 },
    turns: [turn(1), turn(2), turn(3)],
    whileActive: random.pick('while active', ['interrupt', 'queue'] as const),
  };
}

/** Points at which operations happen. Points near the start of an item are more likely. */
const POINTS = weighted<string>(
  '3 started, runItems started, runItems ended, runItems reported, board requested, 2 board recorded, 2 start requested',
  '2 start recorded, describe requested, describe recorded, list requested, list recorded, history recorded',
  'task started, task done, post started, post processed, closeChunks started',
  '3 batch ended, 2 item ended',
);

/** Draws one operation; or a failure of a machine near a start, and an operation of a client before the machine is back. */
function drawOperations(random: RandomSource): PlannedBatchOperation[] {
  const at = random.pick('at', POINTS);
  const [short, long] = [random.between('short', 1, 12_000), random.between('long', 1, 300_000)];
  const isEarly = ['started', 'batch ended', 'closeChunks started'].includes(at);
  const point = { at, nth: isEarly ? 1 : random.between('nth', 1, random.pick('up to', [3, 10, 40])) };
  const afterMs =
    at === 'started' ? random.pick('later', [0, short, long]) : random.pick('after', [0, 0, 0, short, long]);
  if (!/^(board|start) /.test(at) || random.chance('is alone', 0.5))
    return [{ ...point, afterMs, operation: drawOperation(random) }];
  const fails = drawOperation(random, weighted('kill, 2 freeze, lose'));
  const operation = drawOperation(
    random,
    weighted('2 terminate, cancel, pause, reset, start, set concurrency'),
  );
  return [
    { ...point, afterMs: 0, operation: fails },
    { ...point, afterMs: short, operation },
  ];
}

const KINDS = weighted(
  '3 kill, 2 freeze, stop, 2 lose, server unavailable, wrong clock, 2 start, 3 terminate, 2 cancel, 2 pause',
  'set concurrency, 2 reset, 3 retry, results, 2 retry item, delete item, cancel item, terminate item',
  '3 foreign',
);

function drawOperation(
  random: RandomSource,
  kinds: readonly (typeof KINDS)[number][] = KINDS,
): BatchOperation {
  const kind = random.pick('act', kinds);
  const ms = random.pick('ms', [500, 5_000, 12_000, 25_000, 90_000]);
  return { kind, ...BATCH_OPERATIONS[kind](random, ms) } as BatchOperation;
}
