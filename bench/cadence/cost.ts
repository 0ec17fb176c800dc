import { LONGEST_WAIT_MS, POLL_LIMIT_MS } from '../../src/activities';
import { REQUEST_OPTIONS } from '../../src/core/request-options';

/** What watching a turn has cost, its start, send and result included. */
export interface Cost {
  readonly events: number;
  /** Billable ones, heartbeats included. */
  readonly actions: number;
  readonly serverCpuMs: number;
}

/** A way to poll, by what the polls of a turn cost. */
export interface Way {
  readonly name: string;
  /** @param pollsAtMs the age of the turn at each poll */
  costOf(pollsAtMs: readonly number[]): Cost;
}

/** The first polls of a follow-up, which have a timer each. */
const TIMER_POLLS = REQUEST_OPTIONS['polling.timerPolls'].default;

/** The SDK sends a heartbeat at most every 0.8 of the heartbeat time-out of 30 s. */
const HEARTBEAT_EVERY_MS = 24_000;

/** The first one of an activity whose first read is longer away: its own beat. */
const FIRST_HEARTBEAT_MS = 10_000;

/**
 * Without any poll: start, settings, the timer beside the send, send, changes of phase, result. The permission of the send is a
 * heartbeat. Events and actions as in every batch of `npm run bench`; server CPU from one run of it on a busy machine, so that
 * the ratios count and not the milliseconds.
 */
const FOLLOW_UP: Cost = { events: 16, actions: 7, serverCpuMs: 67 };
const TEXTBOOK: Cost = { events: 11, actions: 2, serverCpuMs: 30 };
const RETRY_POLLING: Cost = { events: 17, actions: 2, serverCpuMs: 55 };

/**
 * A durable timer and the read after it: two events of the timer, three of the activity, and twice three of a workflow
 * task.
 */
const TIMER_POLL: Cost = { events: 11, actions: 2, serverCpuMs: 24.9 };
/** An activity that polls, however often: three events, and three of the workflow task at its end. */
const POLL_JOB: Cost = { events: 6, actions: 1, serverCpuMs: 13.6 };
const RETRY: Cost = { events: 0, actions: 1, serverCpuMs: 6.8 };
/** A fifth of a retry that had one before its failure, as retries did in 0.2.0. */
const HEARTBEAT: Cost = { events: 0, actions: 1, serverCpuMs: 1.7 };

/** The contestants of `npm run bench`, at the cadence of a request's defaults. */
export const WAYS: readonly Way[] = [
  { name: '`followUp`', costOf: (pollsAtMs) => followUpCost(pollsAtMs) },
  {
    name: '`followUp`, by retries',
    costOf: (pollsAtMs) => followUpCost(pollsAtMs, { longestInProcessMs: 0 }),
  },
  { name: '`textbookLoop`', costOf: ({ length }) => sum([TEXTBOOK, times(length, TIMER_POLL)]) },
  { name: '`retryPolling`', costOf: ({ length }) => sum([RETRY_POLLING, times(length, RETRY)]) },
];

/** What makes a poll: a durable timer and a read, the process of a worker, or a retry. */
export type Gear = 'timer' | 'in-process' | 'retry';

export interface Gears {
  /** Of each poll. */
  readonly polls: readonly Gear[];
  /** Activities that poll until their patience is over. */
  readonly activities: number;
  /** The age of the turn at each heartbeat of a poll in process. */
  readonly heartbeatsAtMs: readonly number[];
}

export interface GearOptions {
  /** @default that of a request */
  readonly timerPolls?: number | undefined;
  /** The longest wait in a worker's process. @default that of the worker */
  readonly longestInProcessMs?: number;
}

/**
 * The first polls are made by timers, then activities poll until their patience is over: in the worker's process where the
 * wait is short, else by retries.
 */
export function gearsOf(
  pollsAtMs: readonly number[],
  { timerPolls = TIMER_POLLS, longestInProcessMs = LONGEST_WAIT_MS }: GearOptions = {},
): Gears {
  const polls: Gear[] = [];
  const heartbeatsAtMs: number[] = [];
  let activities = 0;
  let patientUntilMs = -Infinity;
  /** When the SDK sends the next heartbeat of the attempt, where one polls in process. */
  let nextHeartbeatMs: number | null = null;
  for (const [index, atMs] of pollsAtMs.entries()) {
    if (index < timerPolls) {
      polls.push('timer');
      continue;
    }
    const askedMs = pollsAtMs[index - 1] ?? 0;
    const isFirst = atMs > patientUntilMs;
    if (isFirst) {
      activities += 1;
      patientUntilMs = atMs + POLL_LIMIT_MS;
      nextHeartbeatMs = null;
    }
    if (atMs - askedMs > longestInProcessMs) {
      // The attempt ends, and the next one makes the read.
      polls.push('retry');
      nextHeartbeatMs = null;
      continue;
    }
    polls.push('in-process');
    // The first read of an activity is followed by a heartbeat, if none comes before.
    nextHeartbeatMs ??= isFirst ? Math.min(askedMs + FIRST_HEARTBEAT_MS, atMs) : askedMs;
    // What the last read has shown comes back as the result.
    const untilMs = index === pollsAtMs.length - 1 ? atMs - 1 : atMs;
    for (; nextHeartbeatMs <= untilMs; nextHeartbeatMs += HEARTBEAT_EVERY_MS)
      heartbeatsAtMs.push(nextHeartbeatMs);
  }
  return { polls, activities, heartbeatsAtMs };
}

export function followUpCost(pollsAtMs: readonly number[], options?: GearOptions): Cost {
  const { polls, activities, heartbeatsAtMs } = gearsOf(pollsAtMs, options);
  const by = (gear: Gear): number => polls.filter((each) => each === gear).length;
  return sum([
    FOLLOW_UP,
    times(by('timer'), TIMER_POLL),
    times(activities, POLL_JOB),
    times(by('retry'), RETRY),
    times(heartbeatsAtMs.length, HEARTBEAT),
  ]);
}

function times(count: number, cost: Cost): Cost {
  return {
    events: count * cost.events,
    actions: count * cost.actions,
    serverCpuMs: count * cost.serverCpuMs,
  };
}

function sum(costs: readonly Cost[]): Cost {
  const of = (figure: keyof Cost) => costs.reduce((total, cost) => total + cost[figure], 0);
  return { events: of('events'), actions: of('actions'), serverCpuMs: of('serverCpuMs') };
}
