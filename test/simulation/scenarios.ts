import { buildCase, type Case } from './oracle/case';
import type { FollowUpWorld } from './follow-up-world';
import type { Fault, Plan, PlannedJob } from './plan';
import { JOB_LOCK_WORKFLOW } from '../../src/contract/names';
import { FOLLOW_UPS, type WorldKind } from './simulate';

/** A world with one worker and an idle job, whose differences are chosen for one rule that random worlds seldom reach. */
interface Scenario {
  readonly rule: string;
  readonly request: Partial<Plan['request']>;
  readonly job?: Partial<PlannedJob>;
  readonly lock?: Plan['lock'];
  readonly operations: Plan['operations'];
  /** Whether the world shows the rule. */
  readonly shows: (found: Case) => boolean;
}

const LOST_POST: Fault = {
  ...{ method: 'post' as const, after: 0, count: 1, isIntermittent: false },
  effect: { kind: 'reset', processed: false },
};

/** The third to the sixth GET request receive a 404. */
const NOT_FOUND: Fault = {
  ...{ method: 'get' as const, after: 2, count: 4, isIntermittent: false },
  effect: { kind: 'status', processed: false, status: 404 },
};

/** Polling with equal intervals. */
const pollEvery = (interval: '5s' | '1m' | '20m', timerPolls: number | 'all') =>
  ({ initial: interval, growth: 0, maximum: interval, jitter: 0, timerPolls }) as const;

/** A turn that starts when the message arrives, and makes no pull request. */
const turnOf = (durationMs: number) => ({ durationMs, outcome: 'no-change', takeUpMs: 0 }) as const;

/** An operator's update, after the follow-up has decided to end. */
function updateAfterEnd(name: string, operation: Plan['operations'][number]['operation']): Scenario {
  return {
    rule: `${name} is rejected after the follow-up has decided to end`,
    request: { onUnknownDelivery: 'ask', reconcileTimeout: '0s' },
    job: { faults: [LOST_POST] },
    operations: [
      { at: 'phase needs-decision', nth: 1, afterMs: 1_000, operation: { kind: 'cancel' } },
      { at: 'phase cancelled', nth: 1, afterMs: 0, operation },
    ],
    shows: ({ world }) => world.performed.at(-1)?.answer?.kind === 'rejected',
  };
}

function lastsAtMost({ startedAt, closedAt }: Case['run'], ms: number): boolean {
  return closedAt - startedAt <= ms;
}

/** The send permission is valid for 10 s, the HTTP timeout is 30 s, and maxStaleness is 30 s. */
function readsAfterPostEnds({ posts: [post], polls: [poll] }: Case): boolean {
  return post !== undefined && poll !== undefined && poll.requestedAt - post.requestedAt >= 70_000;
}

const SCENARIOS: readonly Scenario[] = [
  updateAfterEnd('resolveDelivery', { kind: 'decide', decision: 'delivered', names: 'latest' }),
  updateAfterEnd('extendDeadline', { kind: 'extend', duration: '1h' }),
  {
    rule: 'a pollJob whose last read no worker makes ends soon after the deadline, and its reads are counted',
    request: {
      ...{ deadline: '10m', maxStaleness: '1s' },
      polling: pollEvery('5s', 1),
    },
    job: { turns: [turnOf(3_600_000)] },
    operations: [
      {
        ...{ at: 'phase watching', nth: 1, afterMs: 300_000 },
        operation: { kind: 'hold queue', queue: 'reads', ms: 36_000_000 },
      },
    ],
    shows: ({ polls, end, run }) =>
      polls.length > 20 && end.receipt?.responseCounts.active === polls.length && lastsAtMost(run, 900_000),
  },
  {
    rule: 'after another client completed the send activity, the first read is fresh also for a POST that is made later',
    request: { deadline: '30m', maxStaleness: '30s', onUnknownDelivery: 'assume-delivered' },
    operations: [
      {
        ...{ at: 'post requested', nth: 1, afterMs: 0 },
        operation: { kind: 'complete by hand', activity: 'sendMessage', value: 'done' },
      },
    ],
    shows: readsAfterPostEnds,
  },
  {
    rule: 'after a POST that ends later than the timeout of its attempt, the first read is fresh',
    request: { deadline: '30m', maxStaleness: '30s', onUnknownDelivery: 'fail', reconcileTimeout: '2m' },
    job: { faults: [{ ...LOST_POST, effect: { kind: 'timeout', processed: true } }] },
    operations: [
      // The timeout of the attempt, 75 s, includes this time.
      {
        ...{ at: 'sendMessage started', nth: 1, afterMs: 0 },
        operation: { kind: 'freeze', ms: 70_000, suspended: false },
      },
    ],
    shows: readsAfterPostEnds,
  },
  {
    rule: 'no POST starts after the deadline, also if the send permission was recorded before',
    request: { deadline: '5s', maxStaleness: '1s', reconcileTimeout: '1s' },
    operations: [
      {
        ...{ at: 'post requested', nth: 1, afterMs: 0 },
        operation: { kind: 'freeze', ms: 8_000, suspended: false },
      },
    ],
    shows: ({ posts, end }) =>
      posts.length === 1 && posts[0]?.firstByteAt === null && end.type === 'DeadlineExceeded',
  },
  {
    rule: 'pollNow ends a long wait for the next read',
    request: {
      ...{ deadline: '2h', maxStaleness: '1s' },
      polling: pollEvery('20m', 'all'),
    },
    job: { turns: [turnOf(3_600_000)] },
    operations: [{ at: 'phase watching', nth: 1, afterMs: 60_000, operation: { kind: 'poll now' } }],
    shows: ({ world }) => {
      const [update] = world.performedOfKind('poll now');
      return update !== undefined && update.endedAt - update.at < 60_000;
    },
  },
  {
    rule: 'a cancellation ends a read that no worker makes',
    request: {
      ...{ deadline: '2h', maxStaleness: '1s' },
      polling: pollEvery('5s', 'all'),
    },
    job: { turns: [turnOf(7_200_000)] },
    operations: [
      {
        ...{ at: 'phase watching', nth: 1, afterMs: 60_000 },
        operation: { kind: 'hold queue', queue: 'reads', ms: 3_600_000 },
      },
      { at: 'phase watching', nth: 1, afterMs: 120_000, operation: { kind: 'cancel' } },
    ],
    shows: ({ world, run }) => {
      const [cancel] = world.performedOfKind('cancel');
      return cancel !== undefined && run.closedAt - cancel.at < 60_000;
    },
  },
  {
    rule: 'the read at the end of prLinkTimeout is a single read',
    request: {
      ...{ deadline: '2h', maxStaleness: '1s', prLinkTimeout: '1m' },
      polling: pollEvery('20m', 0),
    },
    job: { status: 'failed', turns: [turnOf(1_000)] },
    operations: [],
    shows: ({ polls }) => polls.at(-1)?.point === 'read',
  },
  {
    rule: 'after a send without a report, the reads are compared with the baseline of its checkpoint',
    request: { deadline: '2h', maxStaleness: '30s', onUnknownDelivery: 'fail', reconcileTimeout: '10m' },
    job: { turns: [turnOf(1_800_000)] },
    operations: [
      { at: 'post processed', nth: 1, afterMs: 0, operation: { kind: 'limit attempts' } },
      { at: 'post processed', nth: 1, afterMs: 1, operation: { kind: 'kill', backAfterMs: 1_000 } },
    ],
    shows: ({ end }) => end.receipt?.evidence === 'seen-active',
  },
  {
    rule: 'fewer than five 404s in a row do not end the follow-up',
    request: {
      ...{ deadline: '2h', maxStaleness: '1s' },
      polling: pollEvery('5s', 'all'),
    },
    job: {
      turns: [turnOf(600_000)],
      faults: [
        NOT_FOUND,
        { ...NOT_FOUND, after: 6, count: 1, effect: { kind: 'status', processed: false, status: 500 } },
        { ...NOT_FOUND, after: 7 },
      ],
    },
    operations: [],
    shows: ({ polls, end }) => polls.length > 9 && end.kind === 'result',
  },
  {
    rule: 'the read that ends the second maxStaleness comes when this time is over',
    request: {
      ...{ deadline: '2h', maxStaleness: '10m' },
      polling: pollEvery('20m', 'all'),
    },
    job: { turns: [turnOf(1_000)] },
    operations: [],
    shows: ({ polls, end }) => polls.length === 2 && end.receipt?.evidence === 'unchanged',
  },
  {
    rule: 'a wait for the link ends at the deadline',
    request: {
      ...{ deadline: '10m', maxStaleness: '1s', prLinkTimeout: '1h' },
      polling: pollEvery('1m', 'all'),
    },
    job: { turns: [turnOf(60_000)] },
    operations: [],
    shows: ({ run, end }) => end.kind === 'result' && lastsAtMost(run, 610_000),
  },
  {
    rule: 'a cancellation stops a send that no worker has started',
    request: { deadline: '2h' },
    operations: [
      {
        ...{ at: 'task started', nth: 1, afterMs: 0 },
        operation: { kind: 'hold queue', queue: 'sends', ms: 3_600_000 },
      },
      { at: 'task done', nth: 1, afterMs: 60_000, operation: { kind: 'cancel' } },
    ],
    shows: ({ posts, run, end }) =>
      posts.length === 0 && end.kind === 'cancelled' && lastsAtMost(run, 120_000),
  },
  {
    rule: 'with timerPolls all, a wait before the delivery makes at most 200 single reads',
    request: {
      ...{ deadline: '1h', whenActive: 'wait' },
      polling: pollEvery('5s', 'all'),
    },
    job: { status: 'active' },
    operations: [],
    // The read at the deadline is a single read too.
    shows: ({ gets }) => gets.length > 300 && gets.filter(({ point }) => point === 'read').length <= 201,
  },
  {
    rule: 'a fresh baseline read that shows a turn starts the watch, and no second POST is made',
    request: { deadline: '2h', maxStaleness: '1s', onUnknownDelivery: 'resend', reconcileTimeout: '1m' },
    job: { faults: [LOST_POST] },
    operations: [
      {
        ...{ at: 'sendMessage started', nth: 2, afterMs: 0 },
        operation: { kind: 'turn by another client', ms: 60_000, outcome: 'no-change' },
      },
    ],
    shows: ({ world, posts, end }) =>
      posts.length === 1 &&
      end.kind === 'result' &&
      world.log.every(({ what }) => what !== 'phase waiting-for-job'),
  },
  {
    rule: 'a 404 on the first read ends the follow-up',
    request: { deadline: '2h' },
    job: { faults: [{ ...NOT_FOUND, after: 0, count: 1_000 }] },
    operations: [],
    shows: ({ run, end }) => end.type === 'JobNotFound' && lastsAtMost(run, 60_000),
  },
  {
    rule: 'a configuration error ends the follow-up',
    request: { deadline: '2h' },
    job: { faults: [{ ...LOST_POST, count: 1_000, effect: { kind: 'misconfigured', processed: false } }] },
    operations: [],
    shows: ({ run, end }) => end.type === 'FollowUpRejected' && lastsAtMost(run, 60_000),
  },
  {
    rule: 'a rejected read only delays the wait for a job that then becomes idle',
    request: {
      ...{ deadline: '2h', whenActive: 'wait', maxStaleness: '1s' },
      polling: pollEvery('5s', 'all'),
    },
    job: {
      ...{ status: 'active', activeMs: 120_000 },
      faults: [{ ...NOT_FOUND, effect: { kind: 'status', processed: false, status: 403 } }],
    },
    operations: [],
    shows: ({ posts, end }) => posts.length === 1 && end.kind === 'result',
  },
  {
    rule: 'if a second POST is rejected, the follow-up ends as DeliveryUnknown',
    request: { deadline: '2h', maxStaleness: '1s', onUnknownDelivery: 'resend', reconcileTimeout: '1m' },
    job: {
      faults: [
        LOST_POST,
        { ...LOST_POST, after: 1, effect: { kind: 'status', processed: false, status: 400 } },
      ],
    },
    operations: [],
    shows: ({ posts, end }) => posts.length === 2 && end.type === 'DeliveryUnknown',
  },
  {
    rule: 'a single read follows a poll that an extension of the deadline interrupts',
    request: {
      ...{ deadline: '2h', maxStaleness: '1s' },
      polling: pollEvery('20m', 0),
    },
    job: { turns: [turnOf(3_600_000)] },
    operations: [
      { at: 'phase watching', nth: 1, afterMs: 60_000, operation: { kind: 'extend', duration: '1h' } },
    ],
    shows: ({ world, polls }) => {
      const [{ at } = { at: Infinity }] = world.performedOfKind('extend');
      return polls.some(
        ({ point, requestedAt }) => point === 'read' && requestedAt > at && requestedAt < at + 60_000,
      );
    },
  },
  {
    rule: 'a second POST that was not made leaves the baseline of the first POST in the receipt',
    request: { deadline: '1h', maxStaleness: '1s', onUnknownDelivery: 'resend', reconcileTimeout: '1m' },
    job: {
      faults: [
        LOST_POST,
        { ...LOST_POST, after: 1, count: 1_000, effect: { kind: 'no connection', processed: false } },
      ],
    },
    operations: [
      {
        ...{ at: 'sendMessage started', nth: 2, afterMs: 0 },
        operation: { kind: 'change job', status: 'archived' },
      },
    ],
    shows: ({ end }) => end.type === 'DeadlineExceeded' && end.receipt?.baseline?.status === 'completed',
  },
  {
    rule: 'after a reset, a decision that names the run before the reset is rejected',
    request: { deadline: '1h', maxStaleness: '1s', onUnknownDelivery: 'ask', reconcileTimeout: '1m' },
    job: { faults: [LOST_POST] },
    operations: [
      { at: 'phase needs-decision', nth: 1, afterMs: 1_000, operation: { kind: 'reset', share: 0.99 } },
      {
        ...{ at: 'phase needs-decision', nth: 2, afterMs: 1_000 },
        operation: { kind: 'decide', decision: 'not-delivered', names: 'first' },
      },
    ],
    shows: ({ world, posts }) =>
      posts.length === 1 && world.performedOfKind('decide')[0]?.answer?.kind === 'rejected',
  },
  {
    rule: 'a cancelled follow-up releases a job lock that its send acquired but did not report',
    request: { deadline: '2h', whenActive: 'wait' },
    operations: [
      {
        ...{ at: 'baseline requested', nth: 1, afterMs: 0 },
        operation: { kind: 'hold queue', queue: 'sends', ms: 7_200_000 },
      },
      { at: 'baseline requested', nth: 1, afterMs: 1, operation: { kind: 'kill', backAfterMs: 1_000 } },
      { at: 'baseline requested', nth: 1, afterMs: 120_000, operation: { kind: 'cancel' } },
    ],
    shows: ({ world, run, end }) => {
      const [lock] = world.server.runs.filter(({ start }) => start.workflowType === JOB_LOCK_WORKFLOW);
      return end.kind === 'cancelled' && lock !== undefined && lock.closedAt < run.closedAt + 60_000;
    },
  },
  {
    rule: 'a cancellation ends the wait for the job lock',
    request: { deadline: '2h', whenActive: 'wait' },
    lock: { heldMs: 7_200_000, end: 'never' },
    operations: [{ at: 'phase waiting-for-job', nth: 1, afterMs: 60_000, operation: { kind: 'cancel' } }],
    shows: ({ run, end }) => end.kind === 'cancelled' && lastsAtMost(run, 120_000),
  },
];

/** The rules of the scenarios, in the order of their numbers from 1 on. */
export const SCENARIO_RULES: readonly string[] = SCENARIOS.map(({ rule }) => rule);

/** The worlds of the scenarios. The seed is the number of the scenario, and also determines the durations of calls. */
export const SCENARIO_WORLDS: WorldKind<Plan, FollowUpWorld> = {
  draw: (number) => {
    const { request, job, lock = null, operations } = findScenario(number);
    const plan = FOLLOW_UPS.draw(number);
    const idle = { status: 'completed', activeMs: null, lagMs: 0, faults: [] } as const;
    return {
      ...plan,
      ...{ startDelayMs: 0, lock, workers: 1, suggestFrom: 4_096, operations },
      request: { ...plan.request, whenActive: 'send', ...request },
      jobs: [{ ...plan.jobs[0], ...idle, ...job }],
    };
  },
  play: async (plan, workflows) => {
    const { rule, shows } = findScenario(plan.seed);
    const { world, violations } = await FOLLOW_UPS.play(plan, workflows);
    return {
      world,
      violations: shows(buildCase(world))
        ? violations
        : [...violations, `the world does not show the rule “${rule}”`],
    };
  },
  situations: {},
};

function findScenario(number: number): Scenario {
  const scenario = SCENARIOS[number - 1];
  if (scenario === undefined)
    throw new RangeError(`There are ${SCENARIOS.length} scenarios, so ${number} is not one.`);
  return scenario;
}
