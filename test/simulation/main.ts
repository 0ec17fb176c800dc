import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { inspect, parseArgs } from 'node:util';
import { drawBatchPlan } from './batch/plan';
import { SITUATIONS_OF_BATCHES, situationsOfBatch } from './batch/situations';
import { drawPlan } from './draw';
import { bundleWorkflows, simulate, simulateBatch } from './simulate';
import { SITUATION_NAMES, situationsOf } from './situations';
import type { Entry } from './world';

/* npm run simulate: plays the worlds of some seeds, and tells the story of one that lies. */

const HELP = `npm run simulate -- [--seeds FROM..TO] [--batches FROM..TO] [--story] [--until-lie] [--ci]

--seeds 1..1000   the worlds to play, each twice; one number plays one world, a comma divides ranges
--batches 1..200  the worlds of batches to play, each once, in place of those of single follow-ups
--story           tells what happens in each world
--until-lie       ends with the first world that lies, and does not shrink it
--ci              10,000 follow-ups and 380 batches with fixed seeds, 100 and 20 with new ones, divided among a process
                  for each core; each situation must be met
`;

/** Fixed seeds of the long run, so that a commit is judged by its own change; and some that nobody has seen. */
const CI = { seeds: { fixed: 10_000, fresh: 100 }, batches: { fixed: 380, fresh: 20 } };

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    batches: { type: 'string' },
    story: { type: 'boolean', default: false },
    'until-lie': { type: 'boolean', default: false },
    ci: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

let playing = 0;

/** What was played. */
interface Tally {
  played: number;
  liars: number;
  /** How often each situation was met. */
  met: Record<string, number>;
}

/** Two parts of a plan hold what happens: without one of it, all else is drawn as before. */
interface Parts {
  readonly seed: number;
  readonly deeds: readonly unknown[];
  readonly spells?: readonly unknown[];
}

interface Played<Plan, Facts> {
  readonly plan: Plan;
  readonly facts: Facts & { readonly log: readonly Entry[] };
  readonly lies: readonly string[];
}

async function main(): Promise<number> {
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (values.ci) return inProcesses();
  const { seeds = values.batches === undefined ? '1..1000' : '', batches = '' } = values;
  const workflows = await bundleWorkflows();
  const tally: Tally = { played: 0, liars: 0, met: {} };
  await play(tally, seeds, 'follow-ups', drawPlan, (plan) => simulate(plan, workflows), situationsOf);
  await play(
    tally,
    batches,
    'batches',
    drawBatchPlan,
    (plan) => simulateBatch(plan, workflows),
    situationsOfBatch,
  );
  process.send?.(tally);
  return tally.liars;
}

async function play<Plan extends Parts, Facts>(
  tally: Tally,
  seeds: string,
  what: string,
  draw: (seed: number) => Plan,
  playWorld: (plan: Plan) => Promise<Played<Plan, Facts>>,
  situations: (facts: Facts) => readonly string[],
): Promise<void> {
  if (seeds === '') return;
  const begunAt = performance.now();
  const before = { ...tally };
  for (const seed of seedsOf(seeds)) {
    playing = seed;
    const verdict = await playWorld(draw(seed)).catch((error: unknown) => {
      throw new Error(`seed ${seed} breaks the simulation`, { cause: error });
    });
    tally.played += 1;
    for (const name of situations(verdict.facts)) tally.met[name] = (tally.met[name] ?? 0) + 1;
    if (values.story) tell(verdict);
    if (verdict.lies.length === 0) continue;
    tally.liars += 1;
    if (values['until-lie']) {
      say(`seed ${seed} lies, after ${tally.played} ${what}: ${verdict.lies[0] ?? ''}`);
      break;
    }
    tell(await smallest(verdict, playWorld));
  }
  const played = tally.played - before.played;
  const aMinute = Math.round((played * 60_000) / (performance.now() - begunAt));
  say(`${played} ${what}, ${aMinute} a minute, ${tally.liars - before.liars} with a lie`);
}

/** The smallest plan that still lies. */
async function smallest<Plan extends Parts, Facts>(
  liar: Played<Plan, Facts>,
  playWorld: (plan: Plan) => Promise<Played<Plan, Facts>>,
): Promise<Played<Plan, Facts>> {
  let least = liar;
  for (const part of ['deeds', 'spells'] as const)
    for (let index = (liar.plan[part] ?? []).length - 1; index >= 0; index -= 1) {
      const rest = least.plan[part]?.filter((_, each) => each !== index);
      const played = await playWorld({ ...least.plan, [part]: rest });
      if (played.lies.length > 0) least = played;
    }
  return least;
}

/** The long run. Each core plays its share, so that it gets its time beside other programs too. */
async function inProcesses(): Promise<number> {
  const processes = availableParallelism();
  const firstNew = 1_000_000 + Math.floor(Math.random() * 1e9);
  const { seeds, batches } = CI;
  say(
    `new seeds: ${firstNew}..${firstNew + seeds.fresh - 1}; of batches: ${firstNew}..${firstNew + batches.fresh - 1}`,
  );
  const share = (index: number, first: number, count: number) => {
    const from = first + Math.floor((count * index) / processes);
    return `${from}..${first + Math.floor((count * (index + 1)) / processes) - 1}`;
  };
  const shares = (index: number, { fixed, fresh }: (typeof CI)['seeds']) =>
    `${share(index, 1, fixed)},${share(index, firstNew, fresh)}`;
  const tallies = await Promise.all(
    Array.from({ length: processes }, (_, index) => inProcess(shares(index, seeds), shares(index, batches))),
  );
  const sum = (count: (tally: Tally) => number) => tallies.reduce((total, tally) => total + count(tally), 0);
  const missed = [...SITUATION_NAMES, ...SITUATIONS_OF_BATCHES].filter((name) => {
    const times = sum(({ met }) => met[name] ?? 0);
    say(`${String(times).padStart(6)}  ${name}`);
    return times === 0;
  });
  if (missed.length > 0) say(`never met: ${missed.join('; ')}`);
  const [played, liars] = [sum((tally) => tally.played), sum((tally) => tally.liars)];
  say(`${played} worlds, ${liars} with a lie`);
  await report(played - liars, liars + missed.length);
  return liars + missed.length;
}

async function inProcess(seeds: string, batches: string): Promise<Tally> {
  const player = fork(__filename, ['--seeds', seeds, '--batches', batches]);
  const ended = once(player, 'exit');
  const [tally] = (await Promise.race([once(player, 'message'), ended.then(() => [])])) as [Tally?];
  await ended;
  if (tally === undefined) throw new Error(`the process that plays ${seeds} has ended without its count`);
  return tally;
}

function* seedsOf(ranges: string): Iterable<number> {
  for (const range of ranges.split(',')) {
    const [from = 1, to = from] = range.split('..').map(Number);
    if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || to < from)
      throw new TypeError(`--seeds: ${range} is no range of whole numbers, such as 1..1000`);
    for (let seed = from; seed <= to; seed += 1) yield seed;
  }
}

function tell({ plan, facts, lies }: Played<Parts, unknown>): void {
  say(`\nseed ${plan.seed}: ${JSON.stringify({ ...plan, seed: undefined })}`);
  for (const { at, who, what } of facts.log)
    say(`${(at / 1_000).toFixed(3).padStart(12)}  ${who.padEnd(9)} ${what}`);
  for (const lie of lies) say(`LIE: ${lie}`);
}

/** In the shape of jest's own report, so that .ci/run counts it like the others. */
async function report(numPassedTests: number, numFailedTests: number): Promise<void> {
  const none = { numRuntimeErrorTestSuites: 0, numPendingTests: 0 };
  await mkdir('reports', { recursive: true });
  await writeFile('reports/simulation.json', JSON.stringify({ numPassedTests, numFailedTests, ...none }));
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

// What nobody awaits must not hide which world it was.
process.on('unhandledRejection', (error) => {
  process.stderr.write(`seed ${playing}: ${inspect(error)}\n`);
  process.exit(1);
});

main().then(
  (wrong) => {
    process.exitCode = wrong > 0 ? 1 : 0;
  },
  (error: unknown) => {
    process.stderr.write(`${inspect(error)}\n`);
    process.exitCode = 1;
  },
);
