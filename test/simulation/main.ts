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
const CI = { fixed: 10_000, fresh: 100, fixedBatches: 380, freshBatches: 20 };

let playing = 0;

async function main(): Promise<number> {
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
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (values.ci) return inProcesses();
  const seeds = values.seeds ?? (values.batches === undefined ? '1..1000' : undefined);
  const workflows = await bundleWorkflows();
  const one = { tally: { played: 0, liars: 0, met: {} }, workflows, ...values };
  if (seeds !== undefined) await play(seeds, one, 'follow-ups', drawPlan, simulate, situationsOf);
  if (values.batches !== undefined)
    await play(values.batches, one, 'batches', drawBatchPlan, simulateBatch, situationsOfBatch);
  process.send?.(one.tally);
  return one.tally.liars;
}

/** What was played. */
interface Tally {
  played: number;
  liars: number;
  /** How often each situation was met. */
  met: Record<string, number>;
}

interface Play {
  readonly tally: Tally;
  readonly workflows: Awaited<ReturnType<typeof bundleWorkflows>>;
  readonly story: boolean;
  readonly 'until-lie': boolean;
}

/** What a world has shown. */
interface Played<Plan, Facts extends { readonly log: readonly Entry[] }> {
  readonly plan: Plan & {
    readonly seed: number;
    readonly deeds: readonly unknown[];
    readonly spells?: readonly unknown[];
  };
  readonly facts: Facts;
  readonly lies: readonly string[];
}

async function play<Plan extends object, Facts extends { readonly log: readonly Entry[] }>(
  seeds: string,
  { tally, workflows, story, 'until-lie': untilLie }: Play,
  what: string,
  draw: (seed: number) => Played<Plan, Facts>['plan'],
  playWorld: (
    plan: Played<Plan, Facts>['plan'],
    workflows: Play['workflows'],
  ) => Promise<Played<Plan, Facts>>,
  situations: (facts: Facts) => readonly string[],
): Promise<void> {
  const begunAt = performance.now();
  const before = { ...tally };
  for (const seed of seedsOf(seeds)) {
    playing = seed;
    const verdict = await playWorld(draw(seed), workflows).catch((error: unknown) => {
      throw new Error(`seed ${seed} breaks the simulation`, { cause: error });
    });
    tally.played += 1;
    for (const name of situations(verdict.facts)) tally.met[name] = (tally.met[name] ?? 0) + 1;
    if (story) tell(verdict);
    if (verdict.lies.length === 0) continue;
    tally.liars += 1;
    if (untilLie) {
      say(`seed ${seed} lies, after ${tally.played} ${what}: ${verdict.lies[0] ?? ''}`);
      break;
    }
    // The smallest plan that still lies: what is taken away changes nothing of what is drawn for the rest.
    let smallest = verdict;
    for (const part of ['deeds', 'spells'] as const)
      for (let index = (verdict.plan[part] ?? []).length - 1; index >= 0; index -= 1) {
        const { plan } = smallest;
        const smaller = { ...plan, [part]: plan[part]?.filter((_, each) => each !== index) };
        const played = await playWorld(smaller, workflows);
        if (played.lies.length > 0) smallest = played;
      }
    tell(smallest);
  }
  const played = tally.played - before.played;
  const aMinute = Math.round((played * 60_000) / (performance.now() - begunAt));
  say(`${played} ${what}, ${aMinute} a minute, ${tally.liars - before.liars} with a lie`);
}

/** The long run. Each core plays its share, so that it gets its time beside other programs too. */
async function inProcesses(): Promise<number> {
  const processes = availableParallelism();
  const firstNew = 1_000_000 + Math.floor(Math.random() * 1e9);
  const { fixed, fresh, fixedBatches, freshBatches } = CI;
  say(
    `new seeds: ${firstNew}..${firstNew + fresh - 1}; of batches: ${firstNew}..${firstNew + freshBatches - 1}`,
  );
  const share = (index: number, first: number, count: number) => {
    const from = first + Math.floor((count * index) / processes);
    return `${from}..${first + Math.floor((count * (index + 1)) / processes) - 1}`;
  };
  const tallies = await Promise.all(
    Array.from({ length: processes }, (_, index) =>
      inProcess(
        `${share(index, 1, fixed)},${share(index, firstNew, fresh)}`,
        `${share(index, 1, fixedBatches)},${share(index, firstNew, freshBatches)}`,
      ),
    ),
  );
  const sum = (count: (tally: Tally) => number) => tallies.reduce((total, tally) => total + count(tally), 0);
  const met = [...SITUATION_NAMES, ...SITUATIONS_OF_BATCHES].map((name) => ({
    name,
    times: sum((tally) => tally.met[name] ?? 0),
  }));
  for (const { name, times } of met) say(`${String(times).padStart(6)}  ${name}`);
  const missed = met.filter(({ times }) => times === 0).map(({ name }) => name);
  if (missed.length > 0) say(`never met: ${missed.join('; ')}`);
  const [played, liars] = [sum((tally) => tally.played), sum((tally) => tally.liars)];
  say(`${played} worlds, ${liars} with a lie`);
  await report(played, liars, missed.length);
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

function tell({ plan, facts, lies }: Played<object, { readonly log: readonly Entry[] }>): void {
  say(`\nseed ${plan.seed}: ${JSON.stringify({ ...plan, seed: undefined })}`);
  for (const { at, who, what } of facts.log)
    say(`${(at / 1_000).toFixed(3).padStart(12)}  ${who.padEnd(9)} ${what}`);
  for (const lie of lies) say(`LIE: ${lie}`);
}

/** In the shape of jest's own report, so that .ci/run counts it like the others. */
async function report(played: number, liars: number, missed: number): Promise<void> {
  const counts = {
    numPassedTests: played - liars,
    numFailedTests: liars + missed,
    numRuntimeErrorTestSuites: 0,
    numPendingTests: 0,
  };
  await mkdir('reports', { recursive: true });
  await writeFile('reports/simulation.json', JSON.stringify(counts));
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
