import type { RunOptions } from '../../../src/client/batch/check';
import type { MaxFailures } from '../../../src/batch/items';
import { Luck, weighted } from '../luck';
import { type ActOf, lasting, OF_MACHINES, plain } from '../acts';
import type { Deed, PlannedJob, Spell, WorldPlan } from '../plan';
import { STORIES } from './stories';

/** The plan of one batch. */
export interface BatchPlan extends WorldPlan<BatchAct> {
  /** In the order of the file. */
  readonly items: readonly PlannedItem[];
  readonly concurrency: number;
  readonly maxFailures: MaxFailures;
  /** Bytes of a chunk; null where the items are in the input. */
  readonly partBytes: number | null;
  readonly listLagMs: number;
  /** A slow call of people takes up to so long on each way. */
  readonly paceMs: number;
  /** Null for ever. */
  readonly retentionMs: number | null;
  /** Once all is quiet, somebody starts a batch again that is not done, and tolerates everything. */
  readonly finishes: boolean;
}

interface PlannedItem {
  /** Its number among the jobs. */
  readonly job: number;
  readonly prompt: string;
  /** Of its own. */
  readonly requestId?: string;
}

const somewhere = (luck: Luck) => ({ item: luck.next('item') });

/** What may happen around a batch. `item`: where in the file it stands, from 0 to 1. */
const ACTS = {
  ...OF_MACHINES,
  'wrong clock': (luck: Luck): { ms: number } => ({ ms: luck.of('clock', [-60_000, -2_000, 2_000, 60_000]) }),
  /** With the same file: it attaches, or goes on. */
  start: (luck: Luck): { times: number; options: RunOptions } => ({
    times: luck.of('times', [1, 2]),
    options: {},
  }),
  terminate: (luck: Luck, ms: number) => ({ startsAfterMs: luck.of('starts', [null, 0, 0, ms]) }),
  cancel: (luck: Luck) => ({ cancelRunning: luck.chance('with them', 0.5) }),
  pause: lasting,
  'set concurrency': (luck: Luck) => ({ concurrency: luck.between('new concurrency', 1, 20, 2) }),
  reset: (luck: Luck) => ({ share: luck.next('share') }),
  retry: (luck: Luck) => ({ includeUnknown: luck.chance('include', 0.4) }),
  results: plain,
  /** A pause that nobody ends is ended at last. */
  resume: plain,
  ...{ 'retry item': somewhere, 'delete item': somewhere },
  ...{ 'cancel item': somewhere, 'terminate item': somewhere },
  /** Somebody else starts a follow-up of an item's name. */
  foreign: (luck: Luck) => ({ item: luck.next('item'), samePrompt: luck.chance('same', 0.5) }),
};
export type BatchAct = ActOf<typeof ACTS>;
export type BatchDeed = Deed<BatchAct>;

/** The plan of a seed. Half of the worlds are nearly quiet. */
export function drawBatchPlan(seed: number): BatchPlan {
  const luck = new Luck(seed * 6_311 + 3);
  const most = luck.of('size', [3, 6, 6, 12, 12, 12, 30, luck.of('large', [60, 100, 200])]);
  const count = luck.between('items', 1, most);
  const projects = luck.between('projects', 1, 3);
  const jobs = Array.from({ length: luck.between('jobs', 1, count) }, (_, nth) =>
    drawJob(luck, nth, luck.between('project', 1, projects)),
  );
  const named = luck.of('named', [0, 0, 0.3, 1]);
  const items = Array.from({ length: count }, (_, nth) => ({
    job: luck.between('job', 0, jobs.length - 1, luck.of('spread', [1, 2])),
    // Now and then the same message twice.
    prompt: luck.chance('same prompt', 0.2) ? 'The same message.' : `Message ${nth + 1}.`,
    ...(luck.chance('is named', named) ? { requestId: `order-${nth + 1}` } : {}),
  }));
  const plan: BatchPlan = {
    ...{ seed, jobs, items },
    request: {
      whenActive: luck.of('whenActive', ['send', 'send', 'wait']),
      ...{ maxStaleness: '1s', prLinkTimeout: '0s', reconcileTimeout: '10s' },
      deadline: luck.of('deadline', ['5m', '20m', '20m']),
      onUnknownDelivery: luck.of('unknown', ['fail', 'fail', 'ask', 'assume-delivered']),
      polling: { initial: luck.of('initial', ['1s', '5s', '30s']) },
    },
    concurrency: luck.between('concurrency', 1, 20, 2),
    maxFailures: luck.of('maxFailures', [
      null,
      null,
      null,
      { items: luck.between('few', 0, 2) },
      { percent: 30 },
    ]),
    partBytes: luck.of('parts', [null, null, 300, 1_000]),
    workers: luck.of('workers', [1, 1, 2, 3]),
    suggestFrom: luck.of('suggestFrom', [30, 60, 4_096]),
    listLagMs: luck.of('lag', [0, 1_000, 5_000]),
    paceMs: 60,
    retentionMs: luck.of('retention', [null, null, null, null, 120_000, 600_000]),
    deeds: Array.from({ length: luck.between('deeds', 0, 7, 1.3) }, () => drawDeeds(luck)).flat(),
    finishes: luck.chance('finishes', 0.5),
  };
  return luck.chance('tells a story', 0.15) ? { ...plan, ...luck.of('story', STORIES)(plan, luck) } : plan;
}

function drawJob(luck: Luck, nth: number, project: number): PlannedJob {
  const duration = luck.of('turns', [500, 5_000, 20_000, 20_000, 120_000]);
  const turn = (each: number) => ({
    durationMs: luck.between(`turn ${each}`, 50, duration),
    outcome: luck.of('outcome', weighted('pull-request, no-change, new-pull-request, failed')),
  });
  const post = { operation: 'post', after: luck.of('after', [0, 0, 1, 2]) } as const;
  const processed = luck.chance('processed', 0.5);
  const kind = luck.of('spell', weighted('8 none, 404, 3 422, 500, reset, 429'));
  const spells: Spell[] = [];
  if (kind !== 'none')
    spells.push({
      ...(kind === '404' ? { operation: 'get', after: 0 } : post),
      count: kind === '404' ? Infinity : kind === 'reset' ? 1 : luck.of('count', [1, 1, 3]),
      stutters: false,
      trouble:
        kind === 'reset'
          ? { kind, processed }
          : {
              ...{ kind: 'status', status: Number(kind), processed: kind === '500' && processed },
              ...(kind === '429' && { retryAfter: luck.of('retryAfter', [undefined, '60', '60']) }),
            },
    });
  return {
    ...{ projectId: `project-${project}`, jobId: `job-${nth + 1}`, spells },
    status: luck.of('status', weighted('3 completed, failed, active, archived')),
    ...{ hasLink: luck.chance('link', 0.4), activeMs: 20_000, lagMs: 0, linkLateMs: 0 },
    turns: [turn(1), turn(2), turn(3)],
    whileActive: luck.of('while active', ['interrupt', 'queue'] as const),
  };
}

/** Those around a start stand more than once. */
const POINTS = weighted<string>(
  '3 started, runItems started, runItems over, runItems reported, keep asked, 2 keep recorded, 2 start asked',
  '2 start recorded, describe asked, describe recorded, list asked, list recorded, history recorded',
  'task started, task done, post begun, post processed, closeChunks started',
  '3 batch ended, 2 item ended',
);

/** One deed; or a machine fails around a start, and somebody does something before it is back. */
function drawDeeds(luck: Luck): BatchDeed[] {
  const at = luck.of('at', POINTS);
  const [short, long] = [luck.between('short', 1, 12_000), luck.between('long', 1, 300_000)];
  const isEarly = ['started', 'batch ended', 'closeChunks started'].includes(at);
  const point = { at, nth: isEarly ? 1 : luck.between('nth', 1, luck.of('up to', [3, 10, 40])) };
  const afterMs =
    at === 'started' ? luck.of('later', [0, short, long]) : luck.of('after', [0, 0, 0, short, long]);
  if (!/^(keep|start) /.test(at) || luck.chance('is alone', 0.5))
    return [{ ...point, afterMs, act: drawAct(luck) }];
  const fails = drawAct(luck, weighted('kill, 2 freeze, lose'));
  const act = drawAct(luck, weighted('2 terminate, cancel, pause, reset, start, set concurrency'));
  return [
    { ...point, afterMs: 0, act: fails },
    { ...point, afterMs: short, act },
  ];
}

const KINDS = weighted(
  '3 kill, 2 freeze, stop, 2 lose, server away, wrong clock, 2 start, 3 terminate, 2 cancel, 2 pause',
  'set concurrency, 2 reset, 3 retry, results, 2 retry item, delete item, cancel item, terminate item',
  '3 foreign',
);

function drawAct(luck: Luck, kinds: readonly (typeof KINDS)[number][] = KINDS): BatchAct {
  const kind = luck.of('act', kinds);
  const ms = luck.of('ms', [500, 5_000, 12_000, 25_000, 90_000]);
  return { kind, ...ACTS[kind](luck, ms) } as BatchAct;
}
