/**
 * Measures what a follow-up costs, beside a plain loop, on a Temporal server of its own: `npm run bench`. It prints
 * tables and leaves `reports/bench.json`. It takes less than ten minutes; what else runs on the machine is in
 * its figures.
 */
import { type Entrant, type Length, runBatch } from './batch';
import { type Contestant, ours, textbookLoop } from './contestants';
import type { Ground } from './ground';
import { measureLatency } from './latency';
import { describeMachine, type MachineFacts } from './machine';
import { runBench, say, writeReport } from './run';
import { latencyLine, throughputTable } from './tables';
import { measureThroughput } from './throughput';

/**
 * How many at once, so that all cores are busy and the intervals cost no time: on two idle cores some 10 to 30 s a batch.
 * A contestant whose polls cost little needs more of them: twenty polls take two seconds at least, and sixty take six.
 */
const HEATS: readonly { readonly polls: number; readonly atOnce: ReadonlyMap<Contestant, number> }[] = [
  {
    polls: 4,
    atOnce: new Map([
      [ours, 120],
      [textbookLoop, 120],
    ]),
  },
  {
    polls: 20,
    atOnce: new Map([
      [ours, 240],
      [textbookLoop, 60],
    ]),
  },
  {
    polls: 60,
    atOnce: new Map([
      [ours, 300],
      [textbookLoop, 30],
    ]),
  },
];

/** Two, and a third where the machine is quick. */
const ROUNDS = 3;

/** No batch begins later after the start of the program; a batch takes a minute at most. */
const LAST_BATCH_AT_SECONDS = 8 * 60;

/** Fills the caches of all programs, and has the code compiled that runs often. */
const WARM_UP: Length = { polls: 4, followUps: 80 };

/** Follow-ups a second of the textbook loop's warm-up on two idle cores of 2024; where it is slower, batches are smaller. */
const REFERENCE_RATE = 10;
const SMALLEST_SCALE = 0.25;

const LATENCIES = 20;

async function measure(ground: Ground, machine: MachineFacts): Promise<void> {
  const mayGoOn = () => process.uptime() < LAST_BATCH_AT_SECONDS;
  say('starting the workers');
  const entrants: Entrant[] = [];
  for (const contestant of [ours, textbookLoop]) {
    entrants.push({ contestant, workerPid: await ground.startWorker(contestant) });
  }
  say('warming up');
  let scale = 1;
  for (const entrant of entrants) {
    const { followUpsPerSecond } = await runBatch(ground, entrant, WARM_UP);
    if (entrant.contestant === textbookLoop)
      scale = Math.max(SMALLEST_SCALE, Math.min(1, followUpsPerSecond / REFERENCE_RATE));
  }
  const heats = HEATS.flatMap(({ polls, atOnce }) =>
    entrants.flatMap((entrant) => {
      const followUps = atOnce.get(entrant.contestant);
      return followUps === undefined
        ? []
        : [{ entrant, length: { polls, followUps: Math.round(followUps * scale) } }];
    }),
  );
  await measureLatency(ground, ours, 3);
  say('measuring latency');
  const latency = await measureLatency(ground, ours, LATENCIES);
  say('measuring throughput');
  const throughput = await measureThroughput(ground, heats, { rounds: ROUNDS, mayGoOn, say });

  const file = writeReport('bench.json', { machine, throughput, latencyMs: latency });
  console.log(`
${describeMachine(machine)}

${throughputTable(throughput, textbookLoop.name)}

${latencyLine(latency)}

Per follow-up, medians of the batches ± half their spread; × is the ratio to ${textbookLoop.name}.
Took ${Math.round(process.uptime())} s; all figures: ${file}`);
}

runBench(measure);
