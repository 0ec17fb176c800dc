/**
 * Computes for several polling schedules how often a turn is polled, and how late its end is read. The computation needs no server, and
 * gives the same figures in each run. `npm run docs` writes the figures into the table of docs/performance.md.
 */
import { checkRequest } from '../../src/contract/check-request';
import { pollIntervalMs, type Random } from '../../src/follow-up/cadence';
import type { Polling } from '../../src/contract/request';
import { seededRandom } from '../../sandbox/random';

/** Starts one turn. @returns a function from the age of the turn to the wait before the next poll, both in milliseconds */
type Schedule = (random: Random) => (ageMs: number) => number;

/** The schedule of a request with the default polling, computed with the worker's own function. */
export const OURS: Schedule = (random) => {
  const polling = defaultPolling();
  return (ageMs) => pollIntervalMs(polling, ageMs, random);
};

/**
 * The schedule of this project, and the default schedules of clients for other long-running operations.
 *
 * - core-lro: `POLL_INTERVAL_IN_MS` of Azure/azure-sdk-for-js, sdk/core/core-lro.
 * - gax: the default back-off settings of googleapis/gax-nodejs.
 * - Google LRO: `google.api.MethodSettings.LongRunning` of googleapis, google/api/client.proto; the client library
 *   generators take their defaults from there.
 */
export const SCHEDULES: Readonly<Record<string, Schedule>> = {
  'this project': OURS,
  'core-lro': exponential(2_000, 1, 2_000),
  gax: exponential(100, 1.3, 60_000),
  'Google LRO': exponential(5_000, 1.5, 45_000),
  'a minute': exponential(60_000, 1, 60_000),
};

/** The schedule of a loop with a fixed interval. */
export function fixed(intervalMs: number): Schedule {
  return exponential(intervalMs, 1, intervalMs);
}

function exponential(initialMs: number, factor: number, maximumMs: number): Schedule {
  return () => {
    let nextMs = initialMs;
    return () => {
      const waitMs = nextMs;
      nextMs = Math.min(nextMs * factor, maximumMs);
      return waitMs;
    };
  };
}

function defaultPolling(): Polling {
  const checked = checkRequest({ projectId: 'project', jobId: 'job', prompt: 'prompt', requestId: 'name' });
  if (!checked.ok) throw new TypeError(checked.problems.map(({ text }) => text).join('; '));
  return checked.plan.polling;
}

const MINUTE = 60_000;
/** The lengths of the turns, in milliseconds. */
export const TURNS_MS = [2, 10, 40, 120, 480].map((minutes) => minutes * MINUTE);

/** The number of turns of each length. With this number, another seed changes the 95th percentile by about one percent. */
const SAMPLES = 500;
const SEED = 5;

/** The cost of many turns of about the same length. The lateness is the time from the end of a turn to the poll that reads it. */
export interface ScheduleCost {
  readonly meanPolls: number;
  readonly medianLatenessMs: number;
  readonly p95LatenessMs: number;
  /** The 95th percentile of each turn's lateness divided by (a tenth of the turn's length plus 1 s). */
  readonly p95OfAllowed: number;
}

/** Simulates the same turns for each schedule. Their lengths are evenly distributed from 80 % to 120 % of `lengthMs`. */
export function simulate(schedule: Schedule, lengthMs: number): ScheduleCost {
  const random = seededRandom(SEED);
  const turns = Array.from({ length: SAMPLES }, (_, index) =>
    pollTurn(schedule, lengthMs * (0.8 + (0.4 * (index + random())) / SAMPLES), random),
  );
  return {
    meanPolls: turns.reduce((sum, { polls }) => sum + polls, 0) / SAMPLES,
    medianLatenessMs: nearestRankQuantile(
      turns.map(({ latenessMs }) => latenessMs),
      0.5,
    ),
    p95LatenessMs: nearestRankQuantile(
      turns.map(({ latenessMs }) => latenessMs),
      0.95,
    ),
    p95OfAllowed: nearestRankQuantile(
      turns.map(({ turnMs, latenessMs }) => latenessMs / (turnMs / 10 + 1_000)),
      0.95,
    ),
  };
}

/** Polls one turn until its end is read. Reads take no time and never fail. */
export function pollTurn(schedule: Schedule, turnMs: number, random: Random) {
  const waitAt = schedule(random);
  let [ageMs, polls] = [0, 0];
  for (; ageMs < turnMs; polls += 1) ageMs += waitAt(ageMs);
  return { turnMs, polls, latenessMs: ageMs - turnMs };
}

/** Returns the quantile by the nearest-rank method: the smallest value that at least this share of the values does not exceed. */
function nearestRankQuantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? NaN;
}
