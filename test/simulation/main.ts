import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { inspect, parseArgs } from 'node:util';
import type { WorldPlan } from './plan';
import { BATCHES, bundleWorkflows, FOLLOW_UPS, type Kind, smallest, storyOf, type Told } from './simulate';

/* npm run simulate: plays the worlds of some seeds, and tells the story of one that lies. */

const HELP = `npm run simulate -- [--seeds FROM..TO] [--batches FROM..TO] [--story] [--until-lie] [--ci]

--seeds 1..1000   the worlds to play, each twice; one number plays one world, a comma divides ranges
--batches 1..200  the worlds of batches to play, each once, in place of those of single follow-ups
--story           tells what happens in each world
--until-lie       ends with the first world that lies, and does not shrink it
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
    story: { type: 'boolean', default: false },
    'until-lie': { type: 'boolean', default: false },
    ci: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

let playing = 'no seed';

/** How many `worlds` were played, how many lie, and how often each situation was met. */
type Counts = Record<string, number>;

function add(counts: Counts, name: string, times = 1): void {
  counts[name] = (counts[name] ?? 0) + times;
}

/** @returns how much is wrong */
async function main(): Promise<number> {
  if (values.help) {
    say(HELP);
    return 0;
  }
  if (values.ci) return inProcesses();
  const { batches = '', seeds = batches === '' ? '1..1000' : '' } = values;
  const workflows = await bundleWorkflows();
  const counts: Counts = {};
  const playAll = async <Plan extends WorldPlan<unknown>, World extends Told<Plan>>(
    { draw, play, situations }: Kind<Plan, World>,
    what: string,
    ranges: string,
  ) => {
    const begunAt = performance.now();
    let [played, liars] = [0, 0];
    for (const seed of seedsOf(ranges)) {
      playing = `seed ${seed}`;
      const verdict = await play(draw(seed), workflows);
      played += 1;
      for (const [name, isMet] of Object.entries(situations)) if (isMet(verdict.world)) add(counts, name);
      if (values.story) say(storyOf(verdict));
      if (verdict.lies.length === 0) continue;
      liars += 1;
      if (values['until-lie']) {
        say(`seed ${seed} lies, after ${played} ${what}: ${verdict.lies[0] ?? ''}`);
        break;
      }
      say(storyOf(await smallest<Plan, World>(verdict, (plan) => play(plan, workflows))));
    }
    const aMinute = Math.round((played * 60_000) / (performance.now() - begunAt));
    if (played > 0) say(`${played} ${what}, ${aMinute} a minute, ${liars} with a lie`);
    add(counts, 'worlds', played);
    add(counts, 'liars', liars);
  };
  await playAll(FOLLOW_UPS, 'follow-ups', seeds);
  await playAll(BATCHES, 'batches', batches);
  process.send?.(counts);
  return counts.liars ?? 0;
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
    say(`${String(all[name] ?? 0).padStart(6)}  ${name}`);
    return all[name] === undefined;
  });
  if (missed.length > 0) say(`never met: ${missed.join('; ')}`);
  const { worlds = 0, liars = 0 } = all;
  say(`${worlds} worlds, ${liars} with a lie`);
  // In the shape of jest's own report, so that .ci/run counts it like the others.
  const [numPassedTests, numFailedTests] = [worlds - liars, liars + missed.length];
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

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

// What nobody awaits must not hide which world it was.
process.on('unhandledRejection', (error) => {
  process.stderr.write(`${playing}: ${inspect(error)}\n`);
  process.exit(1);
});

void main().then((wrong) => {
  process.exitCode = wrong > 0 ? 1 : 0;
});
