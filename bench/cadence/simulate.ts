import type { Polling } from '../../src/core/request';
import { type Random, seededRandom } from '../../sandbox/random';
import { type Cost, followUpCost, WAYS } from './cost';
import { ageing, ALTERNATIVES, OTHERS, OURS, type Schedule } from './schedules';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** The nominal lengths of the turns, in milliseconds. */
export const TURNS_MS = [
  ...[2, 5, 10, 20, 40].map((minutes) => minutes * MINUTE),
  ...[1, 2, 4, 8, 12].map((hours) => hours * HOUR),
];

/** So many turns of each length, so that another seed moves the 95th percentile by about a percent. */
const SAMPLES = 500;

/** Any seed does; one that is fixed lets a test compare the page with what the script makes. */
const SEED = 5;

/** The turns whose cost is told of each way to poll. */
const COSTED_TURNS_MS = [5 * MINUTE, 2 * HOUR];

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
  readonly meanLatenessMs: number;
  readonly p95LatenessMs: number;
  /** The 95th percentile of each turn's lateness as a share of what {@link allowedLatenessMs} allows it. */
  readonly p95OfAllowed: number;
}

export interface Row {
  readonly turnMs: number;
  readonly ours: Outcome;
  readonly others: readonly Outcome[];
  /** The most history events, were each poll made by a timer of its own, and as it is. */
  readonly maxEvents: { readonly timersOnly: number; readonly twoGears: number };
}

/** What a turn of about one length costs by the ways to poll, on average, at the cadence of this project. */
export interface CostRow {
  readonly turnMs: number;
  readonly meanPolls: number;
  readonly ways: readonly { readonly name: string; readonly cost: Cost }[];
}

/** What the targets are about. */
export interface AgainstTargets {
  /** Of turns of exactly two hours. */
  readonly maxPolls: number;
  readonly maxEvents: number;
  /** The worst {@link Outcome.p95OfAllowed} of all lengths. */
  readonly p95OfAllowed: number;
}

export interface Alternative extends AgainstTargets {
  /** The one field that differs from the defaults. */
  readonly changed: string;
  /** Of turns of half a minute, where only the shortest interval counts. */
  readonly shortP95LatenessMs: number;
  /** Of the longest turns, where only the longest interval counts. */
  readonly longMeanPolls: number;
  readonly longP95LatenessMs: number;
}

export interface Simulation {
  readonly rows: readonly Row[];
  readonly costs: readonly CostRow[];
  readonly targets: AgainstTargets;
  /** The defaults first. */
  readonly alternatives: readonly Alternative[];
}

/** The target for the 95th percentile of lateness: a tenth of the turn's age, and a second for short turns. */
export function allowedLatenessMs(turnMs: number): number {
  return turnMs / 10 + 1_000;
}

/** Simulates every schedule. The result is the same on each run. */
export function simulate(): Simulation {
  const rows = TURNS_MS.map(rowOf);
  const [defaults, ...others] = ALTERNATIVES.map(alternativeOf);
  if (defaults === undefined) throw new TypeError('the alternatives begin with the defaults');
  return {
    rows,
    costs: COSTED_TURNS_MS.map(costRowOf),
    targets: defaults,
    alternatives: [defaults, ...others],
  };
}

function alternativeOf({ changed, polling }: { changed: string; polling: Polling }): Alternative {
  const schedule = ageing(changed, polling);
  const twoHours = watchMany(
    schedule,
    () => 2 * HOUR,
    ({ pollsAtMs }) => ({
      polls: pollsAtMs.length,
      events: followUpCost(pollsAtMs).events,
    }),
  );
  const outcomes = TURNS_MS.map((turnMs) => outcomeOf(schedule, turnMs));
  const short = outcomeOf(schedule, MINUTE / 2);
  const long = outcomes.at(-1);
  return {
    changed,
    maxPolls: Math.max(...twoHours.map(({ polls }) => polls)),
    maxEvents: Math.max(...twoHours.map(({ events }) => events)),
    p95OfAllowed: Math.max(...outcomes.map(({ p95OfAllowed }) => p95OfAllowed)),
    shortP95LatenessMs: short.p95LatenessMs,
    longMeanPolls: long?.meanPolls ?? NaN,
    longP95LatenessMs: long?.p95LatenessMs ?? NaN,
  };
}

function rowOf(turnMs: number): Row {
  const maxEvents = (timerPolls?: number): number =>
    Math.max(
      ...watchMany(OURS, around(turnMs), ({ pollsAtMs }) => followUpCost(pollsAtMs, { timerPolls }).events),
    );
  return {
    turnMs,
    ours: outcomeOf(OURS, turnMs),
    others: OTHERS.map((schedule) => outcomeOf(schedule, turnMs)),
    maxEvents: { timersOnly: maxEvents(Infinity), twoGears: maxEvents() },
  };
}

function costRowOf(turnMs: number): CostRow {
  return {
    turnMs,
    meanPolls: outcomeOf(OURS, turnMs).meanPolls,
    ways: WAYS.map((way) => {
      const costs = watchMany(OURS, around(turnMs), ({ pollsAtMs }) => way.costOf(pollsAtMs));
      const meanOf = (figure: keyof Cost): number => mean(costs.map((cost) => cost[figure]));
      return {
        name: way.name,
        cost: {
          events: meanOf('events'),
          actions: meanOf('actions'),
          serverCpuMs: meanOf('serverCpuMs'),
        },
      };
    }),
  };
}

/** From four fifths to six fifths of a length, evenly: the end of a turn stands at no fixed place between two polls. */
function around(turnMs: number): (share: number) => number {
  return (share) => turnMs * (0.8 + 0.4 * share);
}

/** What is kept of one of many turns: the times of all its polls would fill the memory. */
interface Seen {
  readonly turnMs: number;
  readonly latenessMs: number;
  readonly polls: number;
}

/**
 * The same turns for the same schedule.
 *
 * @param turnLength by a share from 0 to 1 that is spread evenly, and at random within each of its steps
 * @param keep what is kept of each turn
 */
function watchMany<T>(
  schedule: Schedule,
  turnLength: (share: number) => number,
  keep: (watched: Watched) => T,
): T[] {
  const random = seededRandom(SEED);
  return Array.from({ length: SAMPLES }, (_, index) =>
    keep(watch(schedule, turnLength((index + random()) / SAMPLES), random)),
  );
}

function seen({ turnMs, latenessMs, pollsAtMs }: Watched): Seen {
  return { turnMs, latenessMs, polls: pollsAtMs.length };
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

function outcomeOf(schedule: Schedule, turnMs: number): Outcome {
  const turns = watchMany(schedule, around(turnMs), seen);
  const lateness = turns.map(({ latenessMs }) => latenessMs);
  return {
    meanPolls: mean(turns.map(({ polls }) => polls)),
    meanLatenessMs: mean(lateness),
    p95LatenessMs: p95(lateness),
    p95OfAllowed: p95(turns.map(({ latenessMs, turnMs: ended }) => latenessMs / allowedLatenessMs(ended))),
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The 95th percentile: the least value that 95 of 100 do not exceed. */
function p95(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.ceil(0.95 * sorted.length) - 1] ?? NaN;
}
