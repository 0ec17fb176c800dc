import type { Luck } from '../luck';
import type { Spell } from '../plan';
import type { BatchDeed, BatchPlan } from './plan';

const REJECTED: Spell = {
  ...{ operation: 'post', after: 0, count: 1, stutters: false },
  trouble: { kind: 'status', status: 422, processed: false },
};

/** The first one is longer than a pause, an attempt of the batch and the lag of a list together. */
const TURNS = [400_000, 5_000, 5_000].map((durationMs) => ({ durationMs, outcome: 'no-change' as const }));

/** So few items that a story is soon told. */
const ITEMS = 8;

/** The first items are for one job, which rejects the first message. Its end is the first one, because turns are long. */
function withRejected(
  { jobs, items, request, deeds }: BatchPlan,
  ofJob: number,
  ...story: BatchDeed[]
): Partial<BatchPlan> {
  return {
    jobs: jobs.map((each, nth) => ({
      ...each,
      ...{ spells: nth === 0 ? [REJECTED] : [], status: 'completed', turns: TURNS },
    })),
    items: items.slice(0, ITEMS).map((item, nth) => (nth < ofJob ? { ...item, job: 0 } : item)),
    request: { ...request, deadline: '20m' },
    tolerate: null,
    deeds: [...deeds.slice(0, 1), ...story],
  };
}

const AT_ITS_START = { at: 'started', nth: 1 } as const;
const AT_AN_END = { at: 'item ended', nth: 1 } as const;

/** What is broken only where several things come together, which deeds that are drawn one by one hardly ever do. */
export const STORIES: readonly ((plan: BatchPlan, luck: Luck) => Partial<BatchPlan>)[] = [
  // The batch attaches to what somebody else has started, and is cancelled with what runs.
  ({ deeds }, luck) => ({
    deeds: [
      ...deeds,
      { ...AT_ITS_START, afterMs: 0, act: { kind: 'foreign', item: luck.next('item'), samePrompt: true } },
      {
        ...{ ...AT_ITS_START, afterMs: luck.between('then', 1, 12_000) },
        act: { kind: 'cancel', followUps: true },
      },
    ],
  }),
  // An item is retried by itself while the batch is paused: then its job is busy, and a place is taken.
  (plan, luck) => ({
    ...withRejected(
      plan,
      3,
      { ...AT_AN_END, afterMs: 0, act: { kind: 'pause', ms: 130_000 } },
      { ...AT_AN_END, afterMs: 1_000, act: { kind: 'retry item', item: 0 } },
    ),
    concurrency: luck.of('places', [2, 10, 10]),
  }),
  // A retry finds open what comes after the item that it tries again, and takes all places.
  (plan, luck) => ({
    ...withRejected(
      plan,
      1,
      { ...AT_AN_END, afterMs: 0, act: { kind: 'set concurrency', concurrency: 1 } },
      {
        ...{ ...AT_AN_END, afterMs: luck.between('then', 2_000, 20_000) },
        act: { kind: 'cancel', followUps: false },
      },
      { at: 'batch ended', nth: 1, afterMs: 0, act: { kind: 'retry', includeUnknown: false } },
    ),
    concurrency: luck.between('places', 2, 4),
  }),
  // Two retry one item, and the run that the first one makes has ended before the second one's start.
  (plan, luck) => {
    const times = [0, luck.between('then', 1, 1_000)];
    const act = { kind: 'retry item', item: 0 } as const;
    const story = withRejected(plan, 1, ...times.map((afterMs) => ({ ...AT_AN_END, afterMs, act })));
    const lost: Spell = { ...REJECTED, after: 1, count: 3, trouble: { kind: 'reset', processed: true } };
    return {
      ...story,
      jobs: (story.jobs ?? []).map((each, nth) => (nth === 0 ? { ...each, spells: [REJECTED, lost] } : each)),
      request: { ...plan.request, confirm: '0s', reconcile: '0s', onUnknownDelivery: 'fail' },
      paceMs: 8_000,
    };
  },
  // An item has ended and is forgotten, and a reset knows nothing of it.
  ({ jobs, items, deeds }, luck) => ({
    jobs: jobs.map((each, nth) => {
      const turns = nth === 0 ? TURNS.slice(1) : TURNS;
      return { ...each, spells: [], status: 'completed', turns };
    }),
    items: items.slice(0, ITEMS),
    retentionMs: 120_000,
    deeds: [
      ...deeds.slice(0, 1),
      { ...AT_AN_END, afterMs: 150_000, act: { kind: 'reset', share: luck.next('share') / 2 } },
    ],
  }),
  // Somebody else has started a later item of a job by its own name, long before a worker is there.
  (plan, luck) => {
    const item = (luck.next('which') * 3) / Math.max(3, plan.items.length);
    const story = withRejected(
      plan,
      3,
      { ...AT_ITS_START, afterMs: 0, act: { kind: 'stop', backAfterMs: 90_000 } },
      { ...AT_ITS_START, afterMs: 100, act: { kind: 'foreign', item, samePrompt: true } },
    );
    const items = (story.items ?? []).map((each, nth) => ({ ...each, requestId: `order-${nth + 1}` }));
    return { ...story, items, workers: 1 };
  },
  // A worker is frozen with a permission when its run is terminated. What it starts in the next run, which has fewer places, is
  // forgotten before that one comes to it.
  ({ jobs, deeds }, luck) => {
    const three = [1, 2, 3].flatMap((nth) =>
      jobs.slice(0, 1).map((each) => ({
        ...{ ...each, jobId: `job-${nth}`, spells: [] },
        ...{ status: 'completed' as const, turns: nth === 1 ? TURNS : TURNS.slice(1) },
      })),
    );
    const withPermission = { at: 'keep recorded', nth: 1 } as const;
    return {
      jobs: three,
      items: three.map((_, job) => ({ job, prompt: `Message ${job + 1}.` })),
      ...{ concurrency: 10, tolerate: null, workers: 2, retentionMs: 120_000 },
      deeds: [
        ...deeds.slice(0, 1),
        { ...withPermission, afterMs: 0, act: { kind: 'freeze', ms: 8_000, suspended: false } },
        { ...withPermission, afterMs: 1, act: { kind: 'set concurrency', concurrency: 1 } },
        {
          ...{ ...withPermission, afterMs: luck.between('then', 500, 3_000) },
          act: { kind: 'terminate', startsAfterMs: 0 },
        },
      ],
    };
  },
];
