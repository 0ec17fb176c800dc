import { LONGEST_WAIT_MS, PATIENCE_MS } from '../../src/activities';
import { REQUEST_DEFAULTS } from '../../src/contract/request';

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
const TIMER_POLLS = REQUEST_DEFAULTS.polling.timerPolls;

/** The SDK sends a heartbeat at most every 0.8 of the heartbeat time-out of 30 s. */
const HEARTBEAT_EVERY_MS = 24_000;

/** The first one of an activity whose first read is longer away: its own beat. */
const FIRST_HEARTBEAT_MS = 10_000;

/**
 * Without any poll: start, settings, the timer beside the send, send, changes of phase, result. The permission of the send is a
 * heartbeat. Events and actions as in every batch of `npm run bench`.
 */
const FOLLOW_UP: Cost = { events: 16, actions: 7, serverCpuMs: 44 };
const TEXTBOOK: Cost = { events: 11, actions: 2, serverCpuMs: 30 };
const RETRY_POLLING: Cost = { events: 17, actions: 2, serverCpuMs: 40 };

/**
 * A durable timer and the read after it: two events of the timer, three of the activity, and twice three of a workflow
 * task.
 */
const TIMER_POLL: Cost = { events: 11, actions: 2, serverCpuMs: 15 };
/** An activity that polls, however often: three events, and three of the workflow task at its end. */
const POLL_JOB: Cost = { events: 6, actions: 1, serverCpuMs: 8 };
const RETRY: Cost = { events: 0, actions: 1, serverCpuMs: 5.5 };
const HEARTBEAT: Cost = { events: 0, actions: 1, serverCpuMs: 1 };

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

/**
 * The cost of a follow-up: the first polls by timers, then by activities that poll until their patience is over, in the
 * worker's process where the wait is short, else by retries.
 */
export function followUpCost(
  pollsAtMs: readonly number[],
  {
    timerPolls = TIMER_POLLS,
    longestInProcessMs = LONGEST_WAIT_MS,
  }: { readonly timerPolls?: number | undefined; readonly longestInProcessMs?: number } = {},
): Cost {
  let activities = 0;
  let retries = 0;
  let heartbeats = 0;
  let patientUntilMs = -Infinity;
  /** When the SDK sends the next heartbeat of the attempt, where one polls in process. */
  let nextHeartbeatMs = Infinity;
  for (const [index, atMs] of pollsAtMs.entries()) {
    if (index < timerPolls) continue;
    const askedMs = pollsAtMs[index - 1] ?? 0;
    const isFirst = atMs > patientUntilMs;
    if (isFirst) {
      activities += 1;
      patientUntilMs = atMs + PATIENCE_MS;
      nextHeartbeatMs = Infinity;
    }
    if (atMs - askedMs > longestInProcessMs) {
      // The attempt ends, and the next one makes the read.
      retries += 1;
      nextHeartbeatMs = Infinity;
      continue;
    }
    if (nextHeartbeatMs === Infinity) nextHeartbeatMs = isFirst ? askedMs + FIRST_HEARTBEAT_MS : askedMs;
    // The first read of an activity has a heartbeat after it, if that comes sooner.
    if (isFirst) nextHeartbeatMs = Math.min(nextHeartbeatMs, atMs);
    const isLast = index === pollsAtMs.length - 1;
    for (
      ;
      nextHeartbeatMs < atMs || (nextHeartbeatMs === atMs && !isLast);
      nextHeartbeatMs += HEARTBEAT_EVERY_MS
    )
      heartbeats += 1;
  }
  return sum([
    FOLLOW_UP,
    times(Math.min(timerPolls, pollsAtMs.length), TIMER_POLL),
    times(activities, POLL_JOB),
    times(retries, RETRY),
    times(heartbeats, HEARTBEAT),
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
