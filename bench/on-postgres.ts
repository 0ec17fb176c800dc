/**
 * The server that production runs, on PostgreSQL: `npm run bench:postgres [-- --only story|figures]`. It builds the server
 * from its Go module (some minutes, once), and needs Go and Debian's PostgreSQL. First the story that a user sees, with a
 * kill of each part in the middle; then figures beside the dev server's, turn by turn. It fails unless every message that
 * was sent arrived once. It prints both and leaves them in `reports/postgres.json`.
 */
import { Command, Option } from 'commander';
import { startDevServer } from '../dev/dev-server';
import { PostgresServer, SERVER_VERSION } from './postgres-server';
import { findTemporalCli, type TemporalCli } from '../dev/temporal-cli';
import { type BatchFigures, type Length, runBatch } from './batch';
import { ours } from './contestants';
import { Ground, QUICK_TIMERS, type StartServer } from './ground';
import { type LatencyFigures, measureLatency } from './latency';
import { machineFacts } from './machine';
import { outsideStory } from './outside-story';
import { say, writeReport } from './run';
import { median } from './statistics';

const LENGTHS: readonly Length[] = [
  { polls: 4, followUps: 120 },
  { polls: 20, followUps: 120 },
];
const WARM_UP: Length = { polls: 4, followUps: 80 };
const ROUNDS = 2;
const LATENCIES = 15;

interface Measured {
  readonly latency: LatencyFigures;
  readonly batches: readonly (Length & Pick<BatchFigures, 'followUpsPerSecond' | 'serverCpuSeconds'>)[];
}

/**
 * Both servers at once, each with a worker of its own: one rests while the other is measured, so that a change of the
 * machine's speed meets both.
 */
async function figures(cli: TemporalCli): Promise<Record<'devServer' | 'postgres', Measured>> {
  const starts: Record<'devServer' | 'postgres', StartServer> = {
    devServer: (options) => startDevServer({ ...options, cli: cli.path }),
    postgres: (options) => PostgresServer.open(say, options),
  };
  const grounds: [keyof typeof starts, Ground, number][] = [];
  try {
    for (const name of ['devServer', 'postgres'] as const) {
      const ground = await Ground.open(starts[name], QUICK_TIMERS);
      grounds.push([name, ground, 0]);
    }
    const measured = { devServer: empty(), postgres: empty() };
    for (const each of grounds) {
      each[2] = await each[1].startWorker(ours);
      await runBatch(each[1], { contestant: ours, workerPid: each[2] }, WARM_UP);
    }
    for (const [name, ground] of grounds) {
      say(`${name}: latency`);
      measured[name].latency = await measureLatency(ground, ours, LATENCIES);
    }
    for (let round = 1; round <= ROUNDS; round += 1) {
      for (const length of LENGTHS) {
        for (const [name, ground, workerPid] of grounds) {
          const { followUpsPerSecond, serverCpuSeconds } = await runBatch(
            ground,
            { contestant: ours, workerPid },
            length,
          );
          say(
            `${name}, round ${round}, ${length.polls} polls: ${followUpsPerSecond.toFixed(1)} follow-ups/s`,
          );
          measured[name].batches.push({ ...length, followUpsPerSecond, serverCpuSeconds });
        }
      }
    }
    return measured;
  } finally {
    for (const [, ground] of grounds) await ground.close();
  }
}

function empty(): { latency: LatencyFigures; batches: Measured['batches'][number][] } {
  const none = { startToPost: NaN, doneToResult: NaN };
  return { latency: { median: none, p95: none }, batches: [] };
}

function table(measured: Record<string, Measured>): string {
  const row = (label: string, value: (of: Measured) => string) =>
    [label.padEnd(44), ...Object.values(measured).map((of) => value(of).padStart(12))].join('');
  const typical = ({ batches }: Measured, polls: number, figure: 'followUpsPerSecond' | 'serverCpuSeconds') =>
    median(batches.filter((batch) => batch.polls === polls).map((batch) => batch[figure]));
  return [
    ''.padEnd(44) +
      Object.keys(measured)
        .map((name) => name.padStart(12))
        .join(''),
    row('start to POST, median, ms', ({ latency }) => latency.median.startToPost.toFixed(0)),
    row('start to POST, p95, ms', ({ latency }) => latency.p95.startToPost.toFixed(0)),
    row('done to result, median, ms', ({ latency }) => latency.median.doneToResult.toFixed(0)),
    ...LENGTHS.flatMap(({ polls }) => [
      row(`${polls} polls: follow-ups a second`, (of) => typical(of, polls, 'followUpsPerSecond').toFixed(1)),
      row(`${polls} polls: CPU of server and database, ms`, (of) =>
        (typical(of, polls, 'serverCpuSeconds') * 1_000).toFixed(0),
      ),
    ]),
  ].join('\n');
}

async function main(only: string | undefined): Promise<void> {
  const cli = await findTemporalCli({ env: process.env, say });
  const machine = machineFacts(cli);
  const story = only === 'figures' ? undefined : await outsideStory(await PostgresServer.open(say), say);
  const measured = only === 'story' ? undefined : await figures(cli);
  const file = writeReport('postgres.json', { machine, server: SERVER_VERSION, story, measured });
  if (story !== undefined) {
    const lines = Object.entries(story).map(([name, value]) => `${name.padEnd(36)}${String(value)}`);
    console.log(`\n${lines.join('\n')}`);
  }
  if (measured !== undefined) console.log(`\n${table(measured)}`);
  console.log(
    `\nTook ${Math.round(process.uptime())} s, load before ${machine.loadBefore.toFixed(1)}; ${file}`,
  );
}

const program = new Command('bench:postgres')
  .addOption(new Option('--only <part>').choices(['story', 'figures']))
  .parse();
main(program.getOptionValue('only') as string | undefined).then(
  () => process.exit(0),
  (error: unknown) => {
    say(error instanceof Error ? (error.stack ?? error.message) : String(error));
    process.exit(1);
  },
);
