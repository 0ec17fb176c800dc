import { PATIENCE_MS } from '../../src/activities';
import type { Polling } from '../../src/contract/request';
import { REQUEST_OPTIONS } from '../../src/contract/request-options';
import { type Random, seededRandom } from '../../src/sandbox/random';
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

/**
 * History events of a follow-up beside its polls: start, settings, baseline, send, result, as recorded in
 * `test/replay/histories/0.1.0/accepted-of-ten-polls.json` (134 events less 10 polls).
 */
const FRAME_EVENTS = 24;

/** The patch of the second gear, where it is reached: a marker and a search attribute (`sixty-polls.json` of 0.2.0). */
const PATCH_EVENTS = 2;

/**
 * History events of a durable timer and the read after it: two of the timer, three of the activity, and twice three of
 * a workflow task. A read that polls on by its own retries leaves no more.
 */
const READ_EVENTS = 11;

/** The first polls, which have a timer each. */
const TIMER_POLLS = REQUEST_OPTIONS['polling.timerPolls'].default;

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
  return { rows, targets: defaults, alternatives: [defaults, ...others] };
}

function alternativeOf({ changed, polling }: { changed: string; polling: Polling }): Alternative {
  const schedule = ageing(changed, polling);
  const twoHours = watchMany(schedule, () => 2 * HOUR);
  const outcomes = TURNS_MS.map((turnMs) => outcomeOf(watchMany(schedule, around(turnMs))));
  const short = outcomeOf(watchMany(schedule, around(MINUTE / 2)));
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
  const ours = watchMany(OURS, around(turnMs));
  return {
    turnMs,
    ours: outcomeOf(ours),
    others: OTHERS.map((schedule) => outcomeOf(watchMany(schedule, around(turnMs)))),
    maxEvents: {
      timersOnly: Math.max(...ours.map(({ polls }) => FRAME_EVENTS + READ_EVENTS * polls)),
      twoGears: Math.max(...ours.map(({ events }) => events)),
    },
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
  readonly events: number;
}

/** @param turnLength by a share from 0 to 1 that is spread evenly, and at random within each of its steps */
function watchMany(schedule: Schedule, turnLength: (share: number) => number): Seen[] {
  const random = seededRandom(SEED);
  return Array.from({ length: SAMPLES }, (_, index) => {
    const turnMs = turnLength((index + random()) / SAMPLES);
    const { pollsAtMs, latenessMs } = watch(schedule, turnMs, random);
    return { turnMs, latenessMs, polls: pollsAtMs.length, events: historyEvents(pollsAtMs) };
  });
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

/**
 * The history events of a follow-up with these polls: the first ones have a timer each; after them one read after a
 * timer polls on until its patience is over.
 */
export function historyEvents(pollsAtMs: readonly number[], timerPolls: number = TIMER_POLLS): number {
  let reads = Math.min(timerPolls, pollsAtMs.length);
  let patientUntilMs = -Infinity;
  for (const [index, atMs] of pollsAtMs.entries()) {
    if (index < timerPolls || atMs <= patientUntilMs) continue;
    reads += 1;
    patientUntilMs = atMs + PATIENCE_MS;
  }
  const patch = reads > timerPolls ? PATCH_EVENTS : 0;
  return FRAME_EVENTS + READ_EVENTS * reads + patch;
}

function outcomeOf(seen: readonly Seen[]): Outcome {
  const lateness = seen.map(({ latenessMs }) => latenessMs);
  return {
    meanPolls: mean(seen.map(({ polls }) => polls)),
    meanLatenessMs: mean(lateness),
    p95LatenessMs: p95(lateness),
    p95OfAllowed: p95(seen.map(({ latenessMs, turnMs }) => latenessMs / allowedLatenessMs(turnMs))),
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
