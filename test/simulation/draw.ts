import { durationText } from '../../src/contract/duration';
import { ON_UNKNOWN_DELIVERY, WHEN_ACTIVE } from '../../src/contract/request';
import { type Act, ACTS, OUTCOMES } from './acts';
import { UPDATE_EXTEND_DEADLINE } from '../../src/contract/names';
import { Luck, weighted } from './luck';
import type { Deed, Plan, PlannedJob, Spell, Trouble } from './plan';

const MINUTE_MS = 60_000;
/** Beyond `maxStaleness`. Longer ones cost many reads. */
const DEADLINES = [1, 10, 10, 30].map((minutes) => minutes * MINUTE_MS);
/** Longer than an hour, which is the longest that the service is left alone. */
const LONG_DEADLINE_MS = 240 * MINUTE_MS;

/** The plan of a seed: the same on every machine. Half of the worlds are nearly quiet, so that rules can be seen alone. */
export function drawPlan(seed: number): Plan {
  const luck = new Luck(seed * 7_919 + 1);
  const maxStalenessMs = luck.of('confirm', [0, 1_000, 30_000, 30_000, 30_000, 120_000]);
  const spells = Array.from({ length: luck.between('spells', 0, 3, 1.5) }, () => drawSpell(luck));
  const isLong = spells.some(({ trouble }) => 'retryAfter' in trouble && trouble.retryAfter === '86400');
  const deadlineMs = maxStalenessMs + (isLong ? LONG_DEADLINE_MS : luck.of('deadline', DEADLINES));
  const plan: Plan = {
    seed,
    request: {
      ...{ projectId: 'project-1', jobId: 'job-1', requestId: 'request-1', prompt: 'Fix the broken links.' },
      whenActive: luck.of('whenActive', [...WHEN_ACTIVE, 'wait', 'send']),
      onUnknownDelivery: luck.of('onUnknownDelivery', [...ON_UNKNOWN_DELIVERY, 'ask']),
      maxStaleness: durationText(maxStalenessMs),
      deadline: durationText(deadlineMs),
      reconcileTimeout: luck.of('reconcile', ['0s', '10s', '30s', '2m', '2m']),
      prLinkTimeout: luck.of('settle', ['0s', '30s', '30s', '2m']),
      polling: {
        timerPolls: luck.of('timerPolls', [0, 2, 3, 3, 'all']),
        initial: luck.of('initial', ['2s', '5s', '5s', '20s']),
        growth: luck.of('growth', [0.3, 0.5, 0.5, 1]),
        jitter: luck.of('jitter', [0, 0.1, 0.5]),
      },
    },
    jobs: [drawJob(luck, maxStalenessMs, spells)],
    workers: luck.of('workers', [1, 1, 2, 3]),
    startDelayMs: luck.chance('start delay', 0.1) ? luck.between('delay', 1, 300_000) : 0,
    lock: luck.chance('lock', 0.25)
      ? {
          heldMs: luck.between('held', 1, luck.of('is held', [5_000, 60_000, 300_000])),
          end: luck.of('lock ends', weighted('2 released, 2 left, foreign, never')),
        }
      : null,
    suggestFrom: luck.chance('suggests', 0.6) ? luck.between('suggestFrom', 16, 40) : 4_096,
    deeds: Array.from({ length: luck.between('deeds', 0, 6, 1.3) }, () =>
      drawDeeds(luck, maxStalenessMs),
    ).flat(),
  };
  return luck.chance('tells a story', 0.03) ? { ...plan, ...luck.of('story', STORIES)(plan, luck) } : plan;
}

const deed = (at: string, nth: number, afterMs: number, act: Act): Deed => ({ at, nth, afterMs, act });
const DELIVERED: Act = { kind: 'decide', decision: 'delivered', names: 'latest' };
const LONG_TURN = { durationMs: 900_000, outcome: 'no-change', takeUpMs: 0 } as const;
const LOST: Spell = {
  ...{ operation: 'post', after: 0, count: 1, stutters: false },
  trouble: { kind: 'reset', processed: false },
};

/** What is broken only where several things come together, which deeds that are drawn one by one hardly ever do. */
const STORIES: readonly ((plan: Plan, luck: Luck) => Partial<Plan>)[] = [
  // The message is lost, reading proves nothing, and the activity that polls reports while a decision gives it up.
  ({ request, jobs: [job] }, luck) => ({
    request: {
      ...{ ...request, whenActive: 'send', onUnknownDelivery: 'ask' },
      ...{ maxStaleness: '1s', deadline: '30m', reconcileTimeout: '10s' },
      polling: { ...request.polling, timerPolls: 0 },
    },
    jobs: [{ ...job, status: 'completed', hasLink: true, lagMs: 0, linkLateMs: 0, spells: [LOST] }],
    deeds: [
      deed('phase needs-decision', 1, luck.between('decides', 5_000, 60_000), DELIVERED),
      deed('countPollReads started', 1, 0, { kind: 'complete by hand', activity: 'pollJob', value: null }),
    ],
  }),
  // The worker of a POST dies, no other one takes the send up until the deadline, and somebody cancels right then.
  ({ request, jobs: [job] }, luck) => ({
    request: { ...request, whenActive: 'send', maxStaleness: '1s', deadline: '2m' },
    jobs: [{ ...job, status: 'completed', spells: [] }],
    workers: 2,
    deeds: [
      deed('post begun', 1, 0, { kind: 'hold queue', queue: 'sends', ms: 600_000 }),
      deed(luck.of('dies', ['post begun', 'post processed']), 1, 0, { kind: 'kill', backAfterMs: 1_000 }),
      deed('stopSend started', 1, 0, { kind: 'cancel' }),
    ],
  }),
  // The worker of a send stands still until the deadline has passed, and no worker runs the follow-up's tasks meanwhile.
  ({ request, jobs: [job] }, luck) => ({
    request: { ...request, whenActive: 'send', maxStaleness: '1s', deadline: '61s' },
    jobs: [{ ...job, status: 'completed', spells: [] }],
    ...{ workers: 2, startDelayMs: 0 },
    deeds: [
      deed('sendMessage started', 1, 0, { kind: 'hold queue', queue: 'follow-up', ms: 600_000 }),
      deed('look reached', 1, 0, {
        kind: 'freeze',
        ms: luck.between('stands still', 62_000, 74_000),
        suspended: false,
      }),
    ],
  }),
  // The next attempt of a send is about to start when the follow-up is cancelled, and its worker stands still after the question
  // what the send has recorded. The report of that attempt fails.
  ({ request, jobs: [job] }, luck) => ({
    request: { ...request, whenActive: 'send', deadline: '10m', maxStaleness: '1s' },
    jobs: [{ ...job, status: 'completed', spells: [] }],
    ...{ workers: 2, startDelayMs: 0 },
    deeds: [
      deed('sendMessage started', 1, 0, { kind: 'break', what: 'input' }),
      deed('sendMessage backs off', 1, luck.between('cancels', 4_880, 4_970), { kind: 'cancel' }),
      deed('describe recorded', 2, 0, { kind: 'freeze', ms: 4_000, suspended: false }),
      deed('post processed', 1, 0, { kind: 'break', what: 'result' }),
    ],
  }),
  // The same, but the first attempt runs when the follow-up is cancelled.
  ({ request, jobs: [job] }) => ({
    request: { ...request, whenActive: 'send', deadline: '10m', maxStaleness: '1s' },
    jobs: [{ ...job, status: 'completed', spells: [] }],
    ...{ workers: 2, startDelayMs: 0 },
    deeds: [
      deed('look asked', 1, 0, { kind: 'cancel' }),
      deed('describe recorded', 1, 0, { kind: 'freeze', ms: 4_000, suspended: false }),
      deed('post processed', 1, 0, { kind: 'break', what: 'result' }),
    ],
  }),
  // The worker of a paused send has died: nothing confirms its cancellation, because the timeouts of the send stand still.
  ({ request, jobs: [job] }, luck) => ({
    request: {
      ...request,
      whenActive: luck.of('paused', ['send', 'wait']),
      deadline: '10m',
      maxStaleness: '1s',
    },
    jobs: [{ ...job, status: 'completed', spells: [] }],
    ...{ workers: 2, startDelayMs: 0, lock: null },
    deeds: [
      deed('look asked', 1, 0, { kind: 'pause send', ms: 86_400_000 }),
      deed('look reached', 1, 0, { kind: 'kill', backAfterMs: 5_000 }),
      deed('look reached', 1, luck.between('cancels paused', 1_000, 700_000), { kind: 'cancel' }),
    ],
  }),
  // No worker runs from the start of the follow-up to its deadline.
  ({ request, jobs: [job] }, luck) => ({
    request: { ...request, deadline: '2m', maxStaleness: '1s' },
    jobs: [{ ...job, status: 'completed', spells: [] }],
    ...{ workers: 1, startDelayMs: luck.of('is delayed', [0, 30_000]), lock: null },
    deeds: [deed('started', 1, 0, { kind: 'kill', backAfterMs: luck.between('is back', 160_000, 600_000) })],
  }),
  // Somebody extends the deadline right when the run would continue as new, and something else comes.
  ({ request, jobs: [job] }, luck) => ({
    request: { ...request, deadline: '30m', polling: { ...request.polling, timerPolls: 'all' } },
    jobs: [{ ...job, status: 'completed', turns: [LONG_TURN], spells: [] }],
    suggestFrom: 16,
    deeds: [
      deed('getJob reported', luck.between('extends', 2, 9), 0, { kind: 'extend', duration: '1h' }),
      deed(`${UPDATE_EXTEND_DEADLINE} started`, 1, 0, { kind: 'signal' }),
    ],
  }),
];

function drawJob(luck: Luck, maxStalenessMs: number, spells: readonly Spell[]): PlannedJob {
  // Both delays together stay within `maxStaleness`, which is what a caller promises by it.
  const lagMs = luck.of('lag', [0, 0, Math.floor(maxStalenessMs / 2), Math.floor(maxStalenessMs * 0.9)]);
  const takeUpMs = luck.of('takeUp', [0, 0, 0, Math.max(0, maxStalenessMs - lagMs - 1)]);
  const turn = (nth: number) => ({
    // Some never end.
    durationMs: luck.chance('endless', 0.08)
      ? null
      : luck.between(`turn ${nth}`, 50, luck.of('turn is', [2_000, 20_000, 20_000, 90_000, 90_000, 900_000])),
    outcome: luck.of('outcome', OUTCOMES),
    takeUpMs,
  });
  return {
    ...{ projectId: 'project-1', jobId: 'job-1', spells },
    status: luck.of('status', weighted('3 completed, failed, active, archived')),
    hasLink: luck.chance('link', 0.4),
    activeMs: luck.chance('active for ever', 0.25) ? null : 60_000,
    turns: [turn(1), turn(2)],
    lagMs,
    linkLateMs: luck.of('link late', [0, 0, 0, 10_000, 100_000]),
    whileActive: luck.of('while active', ['interrupt', 'queue']),
  };
}

const ANSWERS_TO_READS = [
  400, 401, 403, 404, 404, 404, 404, 404, 404, 429, 429, 429, 500, 502, 503, 302, 418,
] as const;
const REFUSED = [400, 403, 404, 405, 409, 410, 413, 415, 422] as const;
const NOBODY_KNOWS = [408, 423, 425, 500, 502, 503, 503, 503, 504, 302, 418] as const;
const RETRY_AFTER = [undefined, '1', '30', '600', '0', '-5', '86400', '1e9', 'soon'];
const retryAfter = (luck: Luck) => luck.of('retryAfter', RETRY_AFTER);

function drawSpell(luck: Luck): Spell {
  if (luck.of('operation', ['get', 'get', 'post', 'post']) === 'post') {
    const [after, count] = [luck.of('after post', [0, 0, 0, 1]), luck.of('posts', [1, 1, 1, 2])];
    return { operation: 'post', after, count, stutters: false, trouble: troubleOfPost(luck) };
  }
  const stutters = luck.chance('stutters', 0.25);
  const count = luck.of('gets', stutters ? [12, 40] : [1, 2, 3, 6, 8, 20]);
  const after = luck.between('after get', 0, 12, 2);
  return { operation: 'get', after, count, stutters, trouble: troubleOfRead(luck) };
}

const KINDS_OF_READ = weighted('4 status, refused, reset, timeout, page, no job, another job, unknown word');
const KINDS_OF_POST = weighted(
  'refused, misconfigured, 2 reset, 2 timeout, page, no job, another job, 3 429, 2 rejected, 4 unknown',
);

function troubleOfRead(luck: Luck): Trouble {
  const processed = false;
  const kind = luck.of('read', KINDS_OF_READ);
  if (kind !== 'status') return { kind, processed };
  const status = luck.of('status of read', ANSWERS_TO_READS);
  // What a gateway says of its own routes.
  const page = [400, 401, 403, 404].includes(status) && luck.chance('page', 0.3);
  return { kind, processed, page, status, retryAfter: retryAfter(luck) };
}

function troubleOfPost(luck: Luck): Trouble {
  const processed = luck.chance('processed', 0.5);
  const kind = luck.of('post', KINDS_OF_POST);
  if (kind === '429') {
    const status = luck.of('not processed', [429, 429, 401, 403]);
    return { kind: 'status', status, processed: false, retryAfter: retryAfter(luck) };
  }
  if (kind === 'rejected') return { kind: 'status', status: luck.of('rejected', REFUSED), processed: false };
  if (kind !== 'unknown') return { kind, processed };
  const status = luck.of('unknown', NOBODY_KNOWS);
  return { kind: 'status', status, processed, retryAfter: retryAfter(luck) };
}

/** Where something can be done. Those of the send stand more than once: there a message can be lost or sent twice. */
const POINTS = weighted<string>(
  'started, task started, task done, workerSettings started, sendMessage started, look asked, look reached',
  'look heard, permission asked, permission recorded, post asked, post begun, post reached, post processed',
  'post heard, sendMessage over, sendMessage reported',
  'permission recorded, post begun, post processed, post heard, sendMessage over',
  'getJob started, read asked, read reached, read heard, getJob over, getJob reported',
  'pollJob started, poll asked, poll heard, beat recorded, pollJob over, pollJob reported, countPollReads started',
  'stopSend started, pause asked, pause recorded, describe asked, describe recorded',
  'start asked, start recorded, waitForJobLock started, releaseJobLock started, terminate recorded',
  'phase sending, phase reconciling, phase needs-decision, phase watching, phase confirming, phase waiting-for-link',
  'phase waiting-for-job, phase unauthorized, 2 phase needs-decision, phase done, phase failed',
);

const KINDS = weighted(
  '4 kill, 2 freeze, stop, 2 lose, 2 break, wrong clock, server away, hold queue, 2 poll now, extend, decide',
  '2 cancel, terminate, 3 reset, pause send, send reset, limit attempts, poll reset, complete by hand',
  'start again, 2 turn of others, 2 change job',
);
const KINDS_WHILE_ASKED = weighted('4 decide, poll now, extend, cancel, reset, kill, turn of others');

/** What is done at some points more often than elsewhere: the name and the share of its chance, and the kind. */
const LIKELY: readonly (readonly [RegExp, string, number, Act['kind']])[] = [
  [/^(permission|post)/, 'freezes', 0.15, 'freeze'],
  [/^(permission|post)/, 'resets', 0.1, 'reset'],
  // A read that was asked for before does not count: the next one is waited for.
  [/^(read|getJob)/, 'asks for another', 0.3, 'poll now'],
  [/^(look|sendMessage started)/, 'pauses', 0.3, 'pause send'],
];

/** One deed, or several at one moment in any order. */
function drawDeeds(luck: Luck, maxStalenessMs: number): Deed[] {
  const at = luck.of('at', POINTS);
  const nth = luck.between('nth', 1, /^(look|post|permission|sendMessage|phase)/.test(at) ? 2 : 10, 2);
  const [short, long] = [luck.between('short', 1, 500), luck.between('long', 1, maxStalenessMs + 60_000)];
  const afterMs = luck.of('after', [0, 0, 0, short, long]);
  const count = luck.of('volley', at === 'phase needs-decision' ? [1, 2, 2, 3] : [1, 1, 1, 1, 2, 3]);
  const acts = Array.from({ length: count }, () => drawAct(luck, at));
  const deeds = acts.map((act) => deed(at, nth, afterMs, act));
  const isBroken = acts.some(({ kind }) => kind === 'break');
  return isBroken && luck.chance('dies and is cancelled', 0.5)
    ? [...deeds, ...diesAndIsCancelled(luck)]
    : deeds;
}

/** A send backs off: its worker has died, and somebody cancels before the next attempt. */
function diesAndIsCancelled(luck: Luck): Deed[] {
  const at = luck.of('dies at', weighted('permission recorded, post begun, post processed, look heard'));
  return [
    deed(at, 1, 0, { kind: 'kill', backAfterMs: 5_000 }),
    deed('sendMessage backs off', 1, luck.of('cancelled after', [0, 200, 900]), { kind: 'cancel' }),
  ];
}

function drawAct(luck: Luck, at: string): Act {
  const likely = LIKELY.find(([points, name, share]) => points.test(at) && luck.chance(name, share));
  const kinds = at.startsWith('phase needs-decision') ? KINDS_WHILE_ASKED : KINDS;
  const kind = likely?.[3] ?? luck.of<Act['kind']>('act', kinds);
  const ms = luck.of('ms', [500, 5_000, 30_000, 90_000, 600_000]);
  return { kind, ...ACTS[kind](luck, ms) } as Act;
}
