import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { inspect, parseArgs } from 'node:util';
import type { WorldPlan } from './plan';
import { SCENARIO_RULES, SCENARIO_WORLDS } from './scenarios';
import {
  BATCHES,
  bundleWorkflows,
  FOLLOW_UPS,
  type WorldKind,
  shrink,
  formatEventLog,
  type WorldResult,
} from './simulate';

/* npm run simulate: plays the worlds of some seeds, and prints the event log of each world that violates a guarantee. */

const HELP = `npm run simulate -- [--seeds FROM..TO] [--batches FROM..TO] [--scenarios FROM..TO] [--log] [--until-violation] [--ci]

--seeds 1..1000    plays these worlds of one follow-up, twice each; a single number plays one world, and a comma separates ranges
--batches 1..200   plays these worlds of one batch, once each, instead of worlds of one follow-up
--scenarios 1..${SCENARIO_RULES.length}   plays these worlds of scenarios.ts
--log              prints the event log of each world
--until-violation  stops at the first world that violates a guarantee, and does not search for a smaller plan that violates it
--ci               plays 4,000 follow-ups and 380 batches with fixed seeds, 100 and 20 with new seeds, and the seeds that failed
                   before, in one process for each core; fails also if a situation never occurs
`;

/**
 * The seeds of `--ci`. `fixed`: seeds from 1 on, so that a failure comes from the tested commit. `fresh`: the number of new seeds.
 * `failed`: new seeds that found a violation in an earlier run.
 */
const CI = {
  seeds: {
    fixed: 4_000,
    fresh: 100,
    failed:
      ',567940382,481763712,736223606,10000406,10004989,10009338,20000258,10017471,700000260,700001022,704005411,704005660,704006051,704016792,704027543,705009392,705016932,710002505,710025935,710053059,710056183,710062143,710123108',
  },
  batches: { fixed: 380, fresh: 20, failed: ',700001181,701000077,740000064' },
};

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    batches: { type: 'string' },
    scenarios: { type: 'string' },
    log: { type: 'boolean', default: false },
    'until-violation': { type: 'boolean', default: false },
    ci: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

let currentSeed = 'no seed';

/** The number of played `worlds`, the number of `violating` worlds, and, for each situation, the number of worlds with it. */
type Counts = Record<string, number>;

function add(counts: Counts, name: string, times = 1): void {
  counts[name] = (counts[name] ?? 0) + times;
}

/** @returns the number of failures: worlds that violate a guarantee and, with `--ci`, situations that never occurred */
async function main(): Promise<number> {
  if (values.help) {
    printLine(HELP);
    return 0;
  }
  if (values.ci) return runInProcesses();
  const { batches = '', scenarios = '', seeds = batches + scenarios === '' ? '1..1000' : '' } = values;
  const workflows = await bundleWorkflows();
  const counts: Counts = {};
  const playAll = async <Plan extends WorldPlan<unknown>, World extends WorldResult<Plan>>(
    { draw, play, situations }: WorldKind<Plan, World>,
    noun: string,
    ranges: string,
  ) => {
    const startedAtMs = performance.now();
    let [played, violating] = [0, 0];
    for (const seed of seedsOf(ranges)) {
      currentSeed = `seed ${seed}`;
      const verdict = await play(draw(seed), workflows);
      played += 1;
      for (const [name, isMet] of Object.entries(situations)) if (isMet(verdict.world)) add(counts, name);
      if (values.log) printLine(formatEventLog(verdict));
      if (verdict.violations.length === 0) continue;
      violating += 1;
      if (values['until-violation']) {
        printLine(
          `seed ${seed} violates a guarantee, after ${played} ${noun}: ${verdict.violations[0] ?? ''}`,
        );
        break;
      }
      printLine(formatEventLog(await shrink<Plan, World>(verdict, (plan) => play(plan, workflows))));
    }
    const perMinute = Math.round((played * 60_000) / (performance.now() - startedAtMs));
    if (played > 0)
      printLine(`${played} ${noun} played (${perMinute} per minute), ${violating} with a violation`);
    add(counts, 'worlds', played);
    add(counts, 'violating', violating);
  };
  await playAll(FOLLOW_UPS, 'follow-ups', seeds);
  await playAll(BATCHES, 'batches', batches);
  await playAll(SCENARIO_WORLDS, 'scenarios', scenarios);
  process.send?.(counts);
  return counts.violating ?? 0;
}

/** Plays the long run of `--ci`, in one process for each core, so that the run gets its CPU time next to other programs. */
async function runInProcesses(): Promise<number> {
  // Each process plays at least one new seed of each kind.
  const processes = Math.min(availableParallelism(), CI.batches.fresh);
  const firstNew = 1_000_000 + Math.floor(Math.random() * 1e9);
  printLine(`The new seeds of follow-ups and of batches begin at ${firstNew}.`);
  const share = (index: number, first: number, count: number) => {
    const from = first + Math.floor((count * index) / processes);
    return `${from}..${first + Math.floor((count * (index + 1)) / processes) - 1}`;
  };
  const all: Counts = {};
  const playShare = async (index: number) => {
    const options = (['seeds', 'batches'] as const).flatMap((kind) => {
      const { fixed, fresh, failed } = CI[kind];
      const ranges = `${share(index, 1, fixed)},${share(index, firstNew, fresh)}`;
      return [`--${kind}`, index === 0 ? ranges + failed : ranges];
    });
    const player = fork(__filename, options);
    const ended = once(player, 'exit');
    const [counts] = (await Promise.race([once(player, 'message'), ended.then(() => [])])) as [Counts?];
    await ended;
    if (counts === undefined)
      throw new Error(`the process with the options ${options.join(' ')} ended without its counts`);
    for (const [name, times] of Object.entries(counts)) add(all, name, times);
  };
  await Promise.all(Array.from({ length: processes }, (_, index) => playShare(index)));
  const missed = Object.keys({ ...FOLLOW_UPS.situations, ...BATCHES.situations }).filter((name) => {
    printLine(`${String(all[name] ?? 0).padStart(6)}  ${name}`);
    return all[name] === undefined;
  });
  if (missed.length > 0) printLine(`These situations never occurred: ${missed.join('; ')}`);
  const { worlds = 0, violating = 0 } = all;
  printLine(`${worlds} worlds played, ${violating} with a violation`);
  // The file has the format of a Jest report, so that .ci/run counts the worlds like tests.
  const [numPassedTests, numFailedTests] = [worlds - violating, violating + missed.length];
  const report = { numPassedTests, numFailedTests, numRuntimeErrorTestSuites: 0, numPendingTests: 0 };
  await mkdir('reports', { recursive: true });
  await writeFile('reports/simulation.json', JSON.stringify(report));
  return numFailedTests;
}

function* seedsOf(ranges: string): Iterable<number> {
  for (const range of ranges.split(',').filter(Boolean)) {
    const [from = 1, to = from] = range.split('..').map(Number);
    if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || to < from)
      throw new TypeError(`${range} is not a range of integers. Give a range such as 1..1000.`);
    for (let seed = from; seed <= to; seed += 1) yield seed;
  }
}

function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

// The message names the seed, because a rejection that no code awaits does not show which world caused it.
process.on('unhandledRejection', (error) => {
  printLine(`${currentSeed} ended with an error: ${inspect(error)}`);
  process.exit(1);
});

void main().then((failures) => {
  process.exitCode = failures > 0 ? 1 : 0;
});
