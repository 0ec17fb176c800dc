import { type Random, seededRandom } from '../../sandbox/random';
import { OTHERS, OURS, type Schedule } from './schedules';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** The nominal lengths of the turns, in milliseconds. */
const TURNS_MS = [
  ...[2, 5, 10, 20, 40].map((minutes) => minutes * MINUTE),
  ...[1, 2, 4, 8, 12].map((hours) => hours * HOUR),
];

/** So many turns of each length, so that another seed moves the 95th percentile by about a percent. */
const SAMPLES = 500;

/** Any seed does; one that is fixed lets a test compare the page with what the script makes. */
const SEED = 5;

/** One turn as a schedule has seen it. */
export interface Watched {
  readonly turnMs: number;
  /** The age of the turn at each poll; the last one is the first after its end. */
  readonly pollsAtMs: readonly number[];
  readonly latenessMs: number;
}

/** What many turns of about one length cost. Lateness is from the end of the turn to the poll that sees it. */
export interface Outcome {
  readonly meanPolls: number;
  readonly p95LatenessMs: number;
  /** The 95th percentile of each turn's lateness as a share of a tenth of its age and a second. */
  readonly p95OfAllowed: number;
}

export interface Row {
  readonly turnMs: number;
  readonly ours: Outcome;
  readonly others: readonly Outcome[];
}

/** Simulates every schedule. The result is the same on each run. */
export function simulate(): Row[] {
  return TURNS_MS.map((turnMs) => ({
    turnMs,
    ours: outcomeOf(OURS, turnMs),
    others: OTHERS.map((schedule) => outcomeOf(schedule, turnMs)),
  }));
}

/** The same turns for each schedule: from four fifths to six fifths of a length, evenly. */
function outcomeOf(schedule: Schedule, turnMs: number): Outcome {
  const random = seededRandom(SEED);
  // The times of all polls would fill the memory.
  const turns = Array.from({ length: SAMPLES }, (_, index) => {
    const share = (index + random()) / SAMPLES;
    const { pollsAtMs, ...rest } = watch(schedule, turnMs * (0.8 + 0.4 * share), random);
    return { ...rest, polls: pollsAtMs.length };
  });
  const lateness = turns.map(({ latenessMs }) => latenessMs);
  return {
    meanPolls: mean(turns.map(({ polls }) => polls)),
    p95LatenessMs: p95(lateness),
    p95OfAllowed: p95(turns.map((turn) => turn.latenessMs / (turn.turnMs / 10 + 1_000))),
  };
}

/** Polls one turn until its end is seen. Reads take no time, and none fails. */
export function watch(schedule: Schedule, turnMs: number, random: Random): Watched {
  const waitAt = schedule.begin(random);
  const pollsAtMs: number[] = [];
  let ageMs = 0;
  while (ageMs < turnMs) {
    ageMs += waitAt(ageMs);
    pollsAtMs.push(ageMs);
  }
  return { turnMs, pollsAtMs, latenessMs: ageMs - turnMs };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The 95th percentile: the least value that 95 of 100 do not exceed. */
function p95(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.ceil(0.95 * sorted.length) - 1] ?? NaN;
}
