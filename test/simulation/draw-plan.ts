import { durationText } from '../../src/contract/duration';
import { ON_UNKNOWN_DELIVERY, WHEN_ACTIVE } from '../../src/contract/request';
import { type Operation, OPERATIONS, TURN_OUTCOMES } from './operations';
import { UPDATE_EXTEND_DEADLINE } from '../../src/contract/names';
import { RandomSource, weighted } from './random-source';
import type { PlannedOperation, Plan, PlannedJob, Fault, FaultEffect } from './plan';

const MINUTE_MS = 60_000;
/** The deadlines, in addition to `maxStaleness`. Longer deadlines cost many reads. */
const DEADLINES = [1, 10, 10, 30].map((minutes) => minutes * MINUTE_MS);
/** Longer than an hour, which is the maximum wait after a `Retry-After`. */
const LONG_DEADLINE_MS = 240 * MINUTE_MS;

/**
 * Draws the plan of a seed, which is the same on every machine. Many plans have few operations and faults, so that single rules have an
 * effect.
 */
export function drawPlan(seed: number): Plan {
  const random = new RandomSource(seed * 7_919 + 1);
  const maxStalenessMs = random.pick('confirm', [0, 1_000, 30_000, 30_000, 30_000, 120_000]);
  const faults = Array.from({ length: random.between('spells', 0, 3, 1.5) }, () => drawFault(random));
  const isLong = faults.some(({ effect }) => 'retryAfter' in effect && effect.retryAfter === '86400');
  const deadlineMs = maxStalenessMs + (isLong ? LONG_DEADLINE_MS : random.pick('deadline', DEADLINES));
  const plan: Plan = {
    seed,
    request: {
      ...{ projectId: 'project-1', jobId: 'job-1', requestId: 'request-1', prompt: 'Fix the broken links.' },
      whenActive: random.pick('whenActive', [...WHEN_ACTIVE, 'wait', 'send']),
      onUnknownDelivery: random.pick('onUnknownDelivery', [...ON_UNKNOWN_DELIVERY, 'ask']),
      maxStaleness: durationText(maxStalenessMs),
      deadline: durationText(deadlineMs),
      reconcileTimeout: random.pick('reconcile', ['0s', '10s', '30s', '2m', '2m']),
      prLinkTimeout: random.pick('settle', ['0s', '30s', '30s', '2m']),
      polling: {
        timerPolls: random.pick('timerPolls', [0, 2, 3, 3, 'all']),
        initial: random.pick('initial', ['2s', '5s', '5s', '20s']),
        growth: random.pick('growth', [0.3, 0.5, 0.5, 1]),
        jitter: random.pick('jitter', [0, 0.1, 0.5]),
      },
    },
    jobs: [drawJob(random, maxStalenessMs, faults)],
    workers: random.pick('workers', [1, 1, 2, 3]),
    startDelayMs: random.chance('start delay', 0.1) ? random.between('delay', 1, 300_000) : 0,
    lock: random.chance('lock', 0.25)
      ? {
          heldMs: random.between('held', 1, random.pick('is held', [5_000, 60_000, 300_000])),
          end: random.pick('lock ends', weighted('2 released, 2 left, foreign, never')),
        }
      : null,
    suggestFrom: random.chance('suggests', 0.6) ? random.between('suggestFrom', 16, 40) : 4_096,
    operations: Array.from({ length: random.between('deeds', 0, 6, 1.3) }, () =>
      drawOperations(random, maxStalenessMs),
    ).flat(),
  };
  return random.chance('uses a scenario', 0.03)
    ? { ...plan, ...random.pick('story', SCENARIOS)(plan, random) }
    : plan;
}

const planOperation = (at: string, nth: number, afterMs: number, operation: Operation): PlannedOperation => ({
  at,
  nth,
  afterMs,
  operation,
});
const DECIDE_DELIVERED: Operation = { kind: 'decide', decision: 'delivered', names: 'latest' };
const LONG_TURN = { durationMs: 900_000, outcome: 'no-change', takeUpMs: 0 } as const;
const LOST: Fault = {
  ...{ method: 'post', after: 0, count: 1, isIntermittent: false },
  effect: { kind: 'reset', processed: false },
};

/** Combinations of operations that independently drawn operations hardly ever make. */
const SCENARIOS: readonly ((plan: Plan, random: RandomSource) => Partial<Plan>)[] = [
  // The delivery is unknown, and reads can't resolve it. `pollJob` reports a result while a decision stops it.
  ({ request, jobs: [job] }, random) => ({
    request: {
      ...{ ...request, whenActive: 'send', onUnknownDelivery: 'ask' },
      ...{ maxStaleness: '1s', deadline: '30m', reconcileTimeout: '10s' },
      polling: { ...request.polling, timerPolls: 0 },
    },
    jobs: [{ ...job, status: 'completed', hasLink: true, lagMs: 0, linkLateMs: 0, faults: [LOST] }],
    operations: [
      planOperation('phase needs-decision', 1, random.between('decides', 5_000, 60_000), DECIDE_DELIVERED),
      planOperation('countPollReads started', 1, 0, {
        kind: 'complete by hand',
        activity: 'pollJob',
        value: null,
      }),
    ],
  }),
  // The worker of a POST dies, and no other worker gets the send before the deadline. A client cancels the follow-up at the deadline.
  ({ request, jobs: [job] }, random) => ({
    request: { ...request, whenActive: 'send', maxStaleness: '1s', deadline: '2m' },
    jobs: [{ ...job, status: 'completed', faults: [] }],
    workers: 2,
    operations: [
      planOperation('post started', 1, 0, { kind: 'hold queue', queue: 'sends', ms: 600_000 }),
      planOperation(random.pick('dies', ['post started', 'post processed']), 1, 0, {
        kind: 'kill',
        backAfterMs: 1_000,
      }),
      planOperation('stopSend started', 1, 0, { kind: 'cancel' }),
    ],
  }),
  // The worker of a send is frozen until the deadline has passed. During this time, no worker gets the follow-up's workflow tasks.
  ({ request, jobs: [job] }, random) => ({
    request: { ...request, whenActive: 'send', maxStaleness: '1s', deadline: '61s' },
    jobs: [{ ...job, status: 'completed', faults: [] }],
    ...{ workers: 2, startDelayMs: 0 },
    operations: [
      planOperation('sendMessage started', 1, 0, { kind: 'hold queue', queue: 'follow-up', ms: 600_000 }),
      planOperation('baseline reached', 1, 0, {
        kind: 'freeze',
        ms: random.between('stops', 62_000, 74_000),
        suspended: false,
      }),
    ],
  }),
  // The next attempt of a send is about to start when the follow-up is cancelled. The worker is frozen after it requested the send's
  // heartbeat details, and the report of the next attempt fails.
  ({ request, jobs: [job] }, random) => ({
    request: { ...request, whenActive: 'send', deadline: '10m', maxStaleness: '1s' },
    jobs: [{ ...job, status: 'completed', faults: [] }],
    ...{ workers: 2, startDelayMs: 0 },
    operations: [
      planOperation('sendMessage started', 1, 0, { kind: 'break', what: 'input' }),
      planOperation('sendMessage backs off', 1, random.between('cancels', 4_880, 4_970), { kind: 'cancel' }),
      planOperation('describe recorded', 2, 0, { kind: 'freeze', ms: 4_000, suspended: false }),
      planOperation('post processed', 1, 0, { kind: 'break', what: 'result' }),
    ],
  }),
  // The same as before, but the first attempt runs when the follow-up is cancelled.
  ({ request, jobs: [job] }) => ({
    request: { ...request, whenActive: 'send', deadline: '10m', maxStaleness: '1s' },
    jobs: [{ ...job, status: 'completed', faults: [] }],
    ...{ workers: 2, startDelayMs: 0 },
    operations: [
      planOperation('baseline requested', 1, 0, { kind: 'cancel' }),
      planOperation('describe recorded', 1, 0, { kind: 'freeze', ms: 4_000, suspended: false }),
      planOperation('post processed', 1, 0, { kind: 'break', what: 'result' }),
    ],
  }),
  // The worker of a paused send has died, so no worker confirms the cancellation. A pause also stops the start-to-close timer of the send.
  ({ request, jobs: [job] }, random) => ({
    request: {
      ...request,
      whenActive: random.pick('paused', ['send', 'wait']),
      deadline: '10m',
      maxStaleness: '1s',
    },
    jobs: [{ ...job, status: 'completed', faults: [] }],
    ...{ workers: 2, startDelayMs: 0, lock: null },
    operations: [
      planOperation('baseline requested', 1, 0, { kind: 'pause send', ms: 86_400_000 }),
      planOperation('baseline reached', 1, 0, { kind: 'kill', backAfterMs: 5_000 }),
      planOperation('baseline reached', 1, random.between('cancels paused', 1_000, 700_000), {
        kind: 'cancel',
      }),
    ],
  }),
  // No worker runs from the start of the follow-up to its deadline.
  ({ request, jobs: [job] }, random) => ({
    request: { ...request, deadline: '2m', maxStaleness: '1s' },
    jobs: [{ ...job, status: 'completed', faults: [] }],
    ...{ workers: 1, startDelayMs: random.pick('is delayed', [0, 30_000]), lock: null },
    operations: [
      planOperation('started', 1, 0, {
        kind: 'kill',
        backAfterMs: random.between('is back', 160_000, 600_000),
      }),
    ],
  }),
  // A client extends the deadline just before the run would continue as new, and a signal arrives during that workflow task.
  ({ request, jobs: [job] }, random) => ({
    request: { ...request, deadline: '30m', polling: { ...request.polling, timerPolls: 'all' } },
    jobs: [{ ...job, status: 'completed', turns: [LONG_TURN], faults: [] }],
    suggestFrom: 16,
    operations: [
      planOperation('getJob reported', random.between('extends', 2, 9), 0, {
        kind: 'extend',
        duration: '1h',
      }),
      planOperation(`${UPDATE_EXTEND_DEADLINE} started`, 1, 0, { kind: 'signal' }),
    ],
  }),
];

function drawJob(random: RandomSource, maxStalenessMs: number, faults: readonly Fault[]): PlannedJob {
  // The two delays together are shorter than `maxStaleness`, as a caller who sets `maxStaleness` assumes.
  const lagMs = random.pick('lag', [0, 0, Math.floor(maxStalenessMs / 2), Math.floor(maxStalenessMs * 0.9)]);
  const takeUpMs = random.pick('takeUp', [0, 0, 0, Math.max(0, maxStalenessMs - lagMs - 1)]);
  const turn = (nth: number) => ({
    // Some turns never end.
    durationMs: random.chance('endless', 0.08)
      ? null
      : random.between(
          `turn ${nth}`,
          50,
          random.pick('turn is', [2_000, 20_000, 20_000, 90_000, 90_000, 900_000]),
        ),
    outcome: random.pick('outcome', TURN_OUTCOMES),
    takeUpMs,
  });
  return {
    ...{ projectId: 'project-1', jobId: 'job-1', faults },
    status: random.pick('status', weighted('3 completed, failed, active, archived')),
    hasLink: random.chance('link', 0.4),
    activeMs: random.chance('active indefinitely', 0.25) ? null : 60_000,
    turns: [turn(1), turn(2)],
    lagMs,
    linkLateMs: random.pick('link late', [0, 0, 0, 10_000, 100_000]),
    whileActive: random.pick('while active', ['interrupt', 'queue']),
  };
}

const READ_STATUSES = [
  400, 401, 403, 404, 404, 404, 404, 404, 404, 429, 429, 429, 500, 502, 503, 302, 418,
] as const;
const REJECTING_STATUSES = [400, 403, 404, 405, 409, 410, 413, 415, 422] as const;
const AMBIGUOUS_STATUSES = [408, 423, 425, 500, 502, 503, 503, 503, 504, 302, 418] as const;
const RETRY_AFTER = [undefined, '1', '30', '600', '0', '-5', '86400', '1e9', 'soon'];
const drawRetryAfter = (random: RandomSource) => random.pick('retryAfter', RETRY_AFTER);

function drawFault(random: RandomSource): Fault {
  if (random.pick('operation', ['get', 'get', 'post', 'post']) === 'post') {
    const [after, count] = [random.pick('after post', [0, 0, 0, 1]), random.pick('posts', [1, 1, 1, 2])];
    return { method: 'post', after, count, isIntermittent: false, effect: drawPostFaultEffect(random) };
  }
  const isIntermittent = random.chance('stutters', 0.25);
  const count = random.pick('gets', isIntermittent ? [12, 40] : [1, 2, 3, 6, 8, 20]);
  const after = random.between('after get', 0, 12, 2);
  return { method: 'get', after, count, isIntermittent, effect: drawReadFaultEffect(random) };
}

const READ_FAULT_KINDS = weighted(
  '4 status, no connection, reset, timeout, page, no job, another job, unknown status',
);
const POST_FAULT_KINDS = weighted(
  'no connection, misconfigured, 2 reset, 2 timeout, page, no job, another job, 3 429, 2 rejected, 4 unknown',
);

function drawReadFaultEffect(random: RandomSource): FaultEffect {
  const processed = false;
  const kind = random.pick('read', READ_FAULT_KINDS);
  if (kind !== 'status') return { kind, processed };
  const status = random.pick('status of read', READ_STATUSES);
  // A gateway returns such a page for its own routes.
  const page = [400, 401, 403, 404].includes(status) && random.chance('page', 0.3);
  return { kind, processed, page, status, retryAfter: drawRetryAfter(random) };
}

function drawPostFaultEffect(random: RandomSource): FaultEffect {
  const processed = random.chance('processed', 0.5);
  const kind = random.pick('post', POST_FAULT_KINDS);
  if (kind === '429') {
    const status = random.pick('not processed', [429, 429, 401, 403]);
    return { kind: 'status', status, processed: false, retryAfter: drawRetryAfter(random) };
  }
  if (kind === 'rejected')
    return { kind: 'status', status: random.pick('rejected', REJECTING_STATUSES), processed: false };
  if (kind !== 'unknown') return { kind, processed };
  const status = random.pick('unknown', AMBIGUOUS_STATUSES);
  return { kind: 'status', status, processed, retryAfter: drawRetryAfter(random) };
}

/** Points at which operations happen. Points of the send are more likely, because faults there can lose a message or send it twice. */
const POINTS = weighted<string>(
  'started, task started, task done, workerSettings started, sendMessage started, baseline requested, baseline reached',
  'baseline received, permission requested, permission recorded, post requested, post started, post reached, post processed',
  'post received, sendMessage ended, sendMessage reported',
  'permission recorded, post started, post processed, post received, sendMessage ended',
  'getJob started, read requested, read reached, read received, getJob ended, getJob reported',
  'pollJob started, poll requested, poll received, beat recorded, pollJob ended, pollJob reported, countPollReads started',
  'stopSend started, pause requested, pause recorded, describe requested, describe recorded',
  'start requested, start recorded, waitForJobLock started, releaseJobLock started, terminate recorded',
  'phase sending, phase reconciling, phase needs-decision, phase watching, phase confirming, phase waiting-for-link',
  'phase waiting-for-job, phase unauthorized, 2 phase needs-decision, phase done, phase failed',
);

const KINDS = weighted(
  '4 kill, 2 freeze, stop, 2 lose, 2 break, wrong clock, server unavailable, hold queue, 2 poll now, extend, decide',
  '2 cancel, terminate, 3 reset, pause send, send reset, limit attempts, poll reset, complete by hand',
  'start again, 2 turn by another client, 2 change job',
);
const KINDS_WHILE_DECISION_NEEDED = weighted(
  '4 decide, poll now, extend, cancel, reset, kill, turn by another client',
);

/** Operations that are more likely at some points: the points, the name and the probability of the random value, and the kind. */
const LIKELY_OPERATIONS: readonly (readonly [RegExp, string, number, Operation['kind']])[] = [
  [/^(permission|post)/, 'freezes', 0.15, 'freeze'],
  [/^(permission|post)/, 'resets', 0.1, 'reset'],
  // `pollNow` waits for a later read than the read that is in progress.
  [/^(read|getJob)/, 'requests another', 0.3, 'poll now'],
  // `pollNow` ends `pollJob`, and the reads of its earlier attempts must be counted.
  [/^pollJob reported/, 'interrupts', 0.5, 'poll now'],
  [/^(baseline|sendMessage started)/, 'pauses', 0.3, 'pause send'],
];

/** Draws one operation, or several operations at the same time. */
function drawOperations(random: RandomSource, maxStalenessMs: number): PlannedOperation[] {
  const at = random.pick('at', POINTS);
  const nth = random.between('nth', 1, /^(baseline|post|permission|sendMessage|phase)/.test(at) ? 2 : 10, 2);
  const [short, long] = [random.between('short', 1, 500), random.between('long', 1, maxStalenessMs + 60_000)];
  const afterMs = random.pick('after', [0, 0, 0, short, long]);
  const count = random.pick('volley', at === 'phase needs-decision' ? [1, 2, 2, 3] : [1, 1, 1, 1, 2, 3]);
  const drawn = Array.from({ length: count }, () => drawOperation(random, at));
  const operations = drawn.map((operation) => planOperation(at, nth, afterMs, operation));
  const isBroken = drawn.some(({ kind }) => kind === 'break');
  return isBroken && random.chance('dies and is cancelled', 0.5)
    ? [...operations, ...killThenCancel(random)]
    : operations;
}

/** The worker of a send dies, and a client cancels the follow-up before the next attempt. */
function killThenCancel(random: RandomSource): PlannedOperation[] {
  const at = random.pick(
    'dies at',
    weighted('permission recorded, post started, post processed, baseline received'),
  );
  return [
    planOperation(at, 1, 0, { kind: 'kill', backAfterMs: 5_000 }),
    planOperation('sendMessage backs off', 1, random.pick('cancelled after', [0, 200, 900]), {
      kind: 'cancel',
    }),
  ];
}

function drawOperation(random: RandomSource, at: string): Operation {
  const likely = LIKELY_OPERATIONS.find(
    ([points, name, share]) => points.test(at) && random.chance(name, share),
  );
  const kinds = at.startsWith('phase needs-decision') ? KINDS_WHILE_DECISION_NEEDED : KINDS;
  const kind = likely?.[3] ?? random.pick<Operation['kind']>('act', kinds);
  const ms = random.pick('ms', [500, 5_000, 30_000, 90_000, 600_000]);
  return { kind, ...OPERATIONS[kind](random, ms) } as Operation;
}
