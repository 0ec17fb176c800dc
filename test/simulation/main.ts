import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { inspect, parseArgs } from 'node:util';
import type { WorldPlan } from './plan';
import { BATCHES, bundleWorkflows, FOLLOW_UPS, type Kind, smallest, storyOf } from './simulate';
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

async function main(): Promise<number> {
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (values.ci) return inProcesses();
  const { seeds = values.batches === undefined ? '1..1000' : '', batches = '' } = values;
  const workflows = await bundleWorkflows();
  const play = async <Plan extends WorldPlan<unknown>, Facts extends { readonly log: readonly Entry[] }>(
    { draw, play: playWorld, situations }: Kind<Plan, Facts>,
    what: string,
    ranges: string,
  ): Promise<Tally> => {
    const begunAt = performance.now();
    const tally: Tally = { played: 0, liars: 0, met: {} };
    for (const seed of seedsOf(ranges)) {
      playing = seed;
      const verdict = await playWorld(draw(seed), workflows).catch((error: unknown) => {
        throw new Error(`seed ${seed} breaks the simulation`, { cause: error });
      });
      tally.played += 1;
      for (const [name, isMet] of Object.entries(situations))
        if (isMet(verdict.facts)) tally.met[name] = (tally.met[name] ?? 0) + 1;
      if (values.story) say(storyOf(verdict));
      if (verdict.lies.length === 0) continue;
      tally.liars += 1;
      if (values['until-lie']) {
        say(`seed ${seed} lies, after ${tally.played} ${what}: ${verdict.lies[0] ?? ''}`);
        break;
      }
      say(storyOf(await smallest(verdict, (plan) => playWorld(plan, workflows))));
    }
    const aMinute = Math.round((tally.played * 60_000) / (performance.now() - begunAt));
    if (tally.played > 0) say(`${tally.played} ${what}, ${aMinute} a minute, ${tally.liars} with a lie`);
    return tally;
  };
  const tally = sumOf([await play(FOLLOW_UPS, 'follow-ups', seeds), await play(BATCHES, 'batches', batches)]);
  process.send?.(tally);
  return tally.liars;
}

function sumOf(tallies: readonly Tally[]): Tally {
  const sum: Tally = { played: 0, liars: 0, met: {} };
  for (const { played, liars, met } of tallies) {
    sum.played += played;
    sum.liars += liars;
    for (const [name, times] of Object.entries(met)) sum.met[name] = (sum.met[name] ?? 0) + times;
  }
  return sum;
}

/** The long run. Each core plays its share, so that it gets its time beside other programs too. */
async function inProcesses(): Promise<number> {
  const processes = availableParallelism();
  const firstNew = 1_000_000 + Math.floor(Math.random() * 1e9);
  say(`new seeds, of follow-ups and of batches: from ${firstNew} on`);
  const share = (index: number, first: number, count: number) => {
    const from = first + Math.floor((count * index) / processes);
    return `${from}..${first + Math.floor((count * (index + 1)) / processes) - 1}`;
  };
  const shares = (index: number, { fixed, fresh }: (typeof CI)['seeds']) =>
    `${share(index, 1, fixed)},${share(index, firstNew, fresh)}`;
  const { played, liars, met } = sumOf(
    await Promise.all(
      Array.from({ length: processes }, (_, index) =>
        inProcess(shares(index, CI.seeds), shares(index, CI.batches)),
      ),
    ),
  );
  const missed = Object.keys({ ...FOLLOW_UPS.situations, ...BATCHES.situations }).filter((name) => {
    say(`${String(met[name] ?? 0).padStart(6)}  ${name}`);
    return met[name] === undefined;
  });
  if (missed.length > 0) say(`never met: ${missed.join('; ')}`);
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
  for (const range of ranges.split(',').filter(Boolean)) {
    const [from = 1, to = from] = range.split('..').map(Number);
    if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || to < from)
      throw new TypeError(`--seeds: ${range} is no range of whole numbers, such as 1..1000`);
    for (let seed = from; seed <= to; seed += 1) yield seed;
  }
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
