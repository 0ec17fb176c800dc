/**
 * How often a turn is polled and how late its end is seen, by the schedule of this project and by those of others. It needs no
 * server, and gives the same figures on each run: `npm run docs` makes the table of docs/performance.md of them.
 */
import { checkRequest } from '../../src/contract/check-request';
import { pollIntervalMs, type Random } from '../../src/follow-up/cadence';
import type { Polling } from '../../src/contract/request';
import { seededRandom } from '../../sandbox/random';

/** Begins one turn. @returns the wait before the next poll of a turn of that age, both in milliseconds */
type Schedule = (random: Random) => (ageMs: number) => number;

/** The schedule of a request that leaves every field to its default, by the worker's own function. */
export const OURS: Schedule = (random) => {
  const polling = defaultPolling();
  return (ageMs) => pollIntervalMs(polling, ageMs, random);
};

/**
 * Ours, and those that clients of other long-running operations ship as their defaults.
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

/** So many turns of about each length, so that another seed moves the 95th percentile by about a percent. */
const SAMPLES = 500;
const SEED = 5;

/** What many turns of about one length cost. Lateness is from the end of a turn to the poll that sees it. */
export interface ScheduleCost {
  readonly meanPolls: number;
  readonly p95LatenessMs: number;
  /** The 95th percentile of each turn's lateness as a share of a tenth of its age and a second. */
  readonly p95OfAllowed: number;
}

/** The same turns for each schedule: from four fifths to six fifths of a length, evenly. */
export function simulate(schedule: Schedule, lengthMs: number): ScheduleCost {
  const random = seededRandom(SEED);
  const turns = Array.from({ length: SAMPLES }, (_, index) =>
    pollTurn(schedule, lengthMs * (0.8 + (0.4 * (index + random())) / SAMPLES), random),
  );
  return {
    meanPolls: turns.reduce((sum, { polls }) => sum + polls, 0) / SAMPLES,
    p95LatenessMs: p95(turns.map(({ latenessMs }) => latenessMs)),
    p95OfAllowed: p95(turns.map(({ turnMs, latenessMs }) => latenessMs / (turnMs / 10 + 1_000))),
  };
}

/** Polls one turn until its end is seen. Reads take no time, and none fails. */
export function pollTurn(schedule: Schedule, turnMs: number, random: Random) {
  const waitAt = schedule(random);
  let [ageMs, polls] = [0, 0];
  for (; ageMs < turnMs; polls += 1) ageMs += waitAt(ageMs);
  return { turnMs, polls, latenessMs: ageMs - turnMs };
}

/** The least value that 95 of 100 do not exceed. */
function p95(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.ceil(0.95 * sorted.length) - 1] ?? NaN;
}
