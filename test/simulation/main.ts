import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { inspect, parseArgs } from 'node:util';
import type { WorldPlan } from './plan';
import {
  BATCHES,
  bundleWorkflows,
  FOLLOW_UPS,
  type WorldKind,
  shrink,
  formatEventLog,
  type WorldResult,
} from './simulate';

/* npm run simulate: plays the worlds of some seeds, and tells the story of one that violates a guarantee. */

const HELP = `npm run simulate -- [--seeds FROM..TO] [--batches FROM..TO] [--log] [--until-violation] [--ci]

--seeds 1..1000   the worlds to play, each twice; one number plays one world, a comma divides ranges
--batches 1..200  the worlds of batches to play, each once, in place of those of single follow-ups
--log             prints what happens in each world
--until-violation       ends with the first world that violates a guarantee, and does not shrink it
--ci              10,000 follow-ups and 380 batches with fixed seeds, 100 and 20 with new ones, and those that have failed
                  once, divided among a process for each core; each situation must be met
`;

/** Fixed seeds of the long run, so that a commit is judged by its own change; some that nobody has seen; and new ones that failed. */
const CI = {
  seeds: { fixed: 10_000, fresh: 100, failed: ',567940382,481763712' },
  batches: { fixed: 380, fresh: 20, failed: '' },
};

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    batches: { type: 'string' },
    log: { type: 'boolean', default: false },
    'until-violation': { type: 'boolean', default: false },
    ci: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

let currentSeed = 'no seed';

/** How many `worlds` were played, how many violate a guarantee, and how often each situation was met. */
type Counts = Record<string, number>;

function add(counts: Counts, name: string, times = 1): void {
  counts[name] = (counts[name] ?? 0) + times;
}

/** @returns how much is wrong */
async function main(): Promise<number> {
  if (values.help) {
    printLine(HELP);
    return 0;
  }
  if (values.ci) return runInProcesses();
  const { batches = '', seeds = batches === '' ? '1..1000' : '' } = values;
  const workflows = await bundleWorkflows();
  const counts: Counts = {};
  const playAll = async <Plan extends WorldPlan<unknown>, World extends WorldResult<Plan>>(
    { draw, play, situations }: WorldKind<Plan, World>,
    what: string,
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
          `seed ${seed} violates a guarantee, after ${played} ${what}: ${verdict.violations[0] ?? ''}`,
        );
        break;
      }
      printLine(formatEventLog(await shrink<Plan, World>(verdict, (plan) => play(plan, workflows))));
    }
    const aMinute = Math.round((played * 60_000) / (performance.now() - startedAtMs));
    if (played > 0) printLine(`${played} ${what}, ${aMinute} a minute, ${violating} with a violation`);
    add(counts, 'worlds', played);
    add(counts, 'violating', violating);
  };
  await playAll(FOLLOW_UPS, 'follow-ups', seeds);
  await playAll(BATCHES, 'batches', batches);
  process.send?.(counts);
  return counts.violating ?? 0;
}

/** The long run. Each core plays its share, so that it gets its time beside other programs too. */
async function runInProcesses(): Promise<number> {
  const processes = availableParallelism();
  const firstNew = 1_000_000 + Math.floor(Math.random() * 1e9);
  printLine(`new seeds, of follow-ups and of batches: from ${firstNew} on`);
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
    if (counts === undefined) throw new Error(`${options.join(' ')} has ended without its counts`);
    for (const [name, times] of Object.entries(counts)) add(all, name, times);
  };
  await Promise.all(Array.from({ length: processes }, (_, index) => playShare(index)));
  const missed = Object.keys({ ...FOLLOW_UPS.situations, ...BATCHES.situations }).filter((name) => {
    printLine(`${String(all[name] ?? 0).padStart(6)}  ${name}`);
    return all[name] === undefined;
  });
  if (missed.length > 0) printLine(`never met: ${missed.join('; ')}`);
  const { worlds = 0, violating = 0 } = all;
  printLine(`${worlds} worlds, ${violating} with a violation`);
  // In the shape of jest's own report, so that .ci/run counts it like the others.
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
      throw new TypeError(`--seeds: ${range} is no range of whole numbers, such as 1..1000`);
    for (let seed = from; seed <= to; seed += 1) yield seed;
  }
}

function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

// What nobody awaits must not hide which world it was.
process.on('unhandledRejection', (error) => {
  process.stderr.write(`${currentSeed}: ${inspect(error)}\n`);
  process.exit(1);
});

void main().then((wrong) => {
  process.exitCode = wrong > 0 ? 1 : 0;
});
