import { mkdir, writeFile } from 'node:fs/promises';
import { inspect, parseArgs } from 'node:util';
import { drawPlan } from './draw';
import type { Plan } from './plan';
import { shrink } from './shrink';
import { bundleWorkflows, simulate, type Verdict } from './simulate';
import { SITUATION_NAMES, situationsOf } from './situations';

/* npm run simulate: plays the worlds of some seeds, and tells the story of one that lies. */

const HELP = `npm run simulate -- [--seeds FROM..TO] [--story] [--until-lie] [--ci]

--seeds 1..1000   the worlds to play, each twice; one number plays one world
--story           tells what happens in each world
--until-lie       ends with the first world that lies, and does not shrink it
--ci              10,000 follow-ups with fixed seeds and 100 with new ones; each situation must be met
`;

/** Fixed seeds of the long run, so that a commit is judged by its own change; and some that nobody has seen. */
const CI = { fixed: 10_000, fresh: 100 };

let playing = 0;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '1..1000' },
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
  const seeds = values.ci ? seedsOfCi() : seedsOf(values.seeds);
  const workflows = await bundleWorkflows();
  const met = new Map<string, number>(SITUATION_NAMES.map((name) => [name, 0]));
  const begunAt = performance.now();
  const liars: Verdict[] = [];
  let played = 0;
  for (const seed of seeds) {
    playing = seed;
    const verdict = await simulate(drawPlan(seed), workflows).catch((error: unknown) => {
      throw new Error(`seed ${seed} breaks the simulation`, { cause: error });
    });
    played += 1;
    for (const name of situationsOf(verdict.facts)) met.set(name, (met.get(name) ?? 0) + 1);
    if (values.story) tell(verdict);
    if (verdict.lies.length === 0) continue;
    liars.push(verdict);
    if (values['until-lie']) {
      say(`seed ${seed} lies, after ${played} follow-ups: ${verdict.lies[0] ?? ''}`);
      break;
    }
    const smallest: Plan = await shrink(verdict.plan, workflows);
    tell(await simulate(smallest, workflows));
  }
  const minutes = (performance.now() - begunAt) / 60_000;
  const missed = [...met].filter(([, times]) => times === 0).map(([name]) => name);
  if (values.ci) for (const [name, times] of met) say(`${String(times).padStart(6)}  ${name}`);
  if (values.ci && missed.length > 0) say(`never met: ${missed.join('; ')}`);
  say(`${played} follow-ups, ${Math.round(played / minutes)} a minute, ${liars.length} with a lie`);
  if (values.ci) await report(played, liars.length, missed.length);
  return liars.length + (values.ci ? missed.length : 0);
}

function* seedsOf(range: string): Iterable<number> {
  const [from = 1, to = from] = range.split('..').map(Number);
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || to < from)
    throw new TypeError(`--seeds: ${range} is no range of whole numbers, such as 1..1000`);
  for (let seed = from; seed <= to; seed += 1) yield seed;
}

function* seedsOfCi(): Iterable<number> {
  yield* seedsOf(`1..${CI.fixed}`);
  const first = 1_000_000 + Math.floor(Math.random() * 1e9);
  say(`new seeds: ${first}..${first + CI.fresh - 1}`);
  yield* seedsOf(`${first}..${first + CI.fresh - 1}`);
}

function tell({ plan, facts, lies }: Verdict): void {
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
