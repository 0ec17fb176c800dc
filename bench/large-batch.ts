/**
 * A large batch: `npm run bench:batch [-- N] [--concurrency C] [--projects P] [--steer]`. N items (5,000) over twenty
 * projects, two worker processes of which one is killed in the middle, a service that loses some messages and lacks
 * some jobs. With `--steer` the batch is also attached to, paused, resumed, cancelled and run again on the way. Every item
 * is looked for in the sandbox's journal. It prints what the batch has cost and leaves it in `reports/bench-batch.json`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { FollowUpClient, hasCode, type StartedBatch } from '../src/client';
import { workersPolling } from '../src/temporal/sdk-internals';
import { CONCURRENCY, MAX_BATCH_ITEMS } from '../src/core/batch/items';
import { DEFAULT_TASK_QUEUES } from '../src/core/names';
import { BATCH_ID, checkByJournal, historiesOf, requestOf, settled, wholeNumber } from './batch-items';
import { ours } from './contestants';
import type { Ground } from './ground';
import { describeMachine, type MachineFacts } from './machine';
import { MemoryWatch } from './memory-watch';
import { freePorts } from '../dev/free-ports';
import { runBench, say, writeReport } from './run';

interface Options {
  readonly items: number;
  readonly concurrency: number;
  readonly projects: number;
  readonly steer: boolean;
}

async function measure(
  ground: Ground,
  machine: MachineFacts,
  { items, concurrency, projects, steer }: Options,
): Promise<void> {
  const { sandbox, client } = ground;
  const followUps = new FollowUpClient(client);
  const requests = Array.from({ length: items }, (_, index) => requestOf(ground, index, projects));
  const [metricsPort = 0] = await freePorts(1);
  const metrics = `127.0.0.1:${metricsPort}`;
  const staying = await ground.startWorker(ours, { FOLLOW_UP_METRICS_ADDRESS: metrics });
  const killed = await ground.startWorker(ours);
  while ((await workersPolling(client, DEFAULT_TASK_QUEUES.followUp)).length < 2) await sleep(500);
  const memory = new MemoryWatch(staying, metrics, ground.server.pid);
  memory.phase = 'running';

  const startedAt = performance.now();
  const batch = await followUps.batches.check(requests, { batchId: BATCH_ID });
  const started = await followUps.batches.start(batch, { concurrency });
  const handedOverSeconds = (performance.now() - startedAt) / 1_000;
  say(`${started.items} items handed over, ${handedOverSeconds.toFixed(1)} s`);
  const start = () => followUps.batches.start(batch, { concurrency });
  if (steer) await attachAndPause(followUps, start, items);
  await settled(followUps, items / 2);
  process.kill(killed, 'SIGKILL');
  say('one of the two workers was killed');
  if (steer) await cancelAndResume(followUps, start, items);
  void settled(followUps, items).catch(() => undefined);
  const { state, summary } = await followUps.batches.getHandle(BATCH_ID).result();
  const seconds = (performance.now() - startedAt) / 1_000;
  await memory.stop();
  if (state !== 'done' || summary === null) throw new Error(`the batch is ${state}`);

  const ends = await followUps.batches.getHandle(BATCH_ID).settled();
  const truth = checkByJournal(ground, requests, ends);
  const figures = {
    items,
    concurrency,
    seconds,
    itemsPerSecond: items / seconds,
    handedOverSeconds,
    ...(await historiesOf(ground, items)),
    workerPeakRssMib: Math.max(...memory.samples.map(({ workerRssMib }) => workerRssMib)),
    ...truth,
  };
  const file = writeReport('bench-batch.json', { machine, figures, summary });
  const lines = Object.entries(figures).map(
    ([name, value]) => `${name.padEnd(26)}${Number(value.toFixed(2))}`,
  );
  console.log(
    `\n${describeMachine(machine)}\n\n${lines.join('\n')}\n\n${JSON.stringify(summary.byStatus)} ${JSON.stringify(summary.byFailure)}\n`,
  );
  console.log(`Took ${Math.round(process.uptime())} s; ${file}`);
  if (sandbox.journal.entries({ operation: 'message' }).length === 0) throw new Error('nothing was sent');
  if (truth.sentTwice > 0 || truth.ended !== items || truth.accountedFor !== items)
    throw new Error('not every item was sent once or told');
}

async function attachAndPause(
  followUps: FollowUpClient,
  start: () => Promise<StartedBatch>,
  items: number,
): Promise<void> {
  await settled(followUps, items / 5);
  const { attached } = await start();
  say(`started once more: attached to what is ${String(attached)}`);
  await settled(followUps, items / 3);
  await answered(() => followUps.batches.getHandle(BATCH_ID).pause());
  say('paused for twenty seconds');
  await sleep(20_000);
  await answered(() => followUps.batches.getHandle(BATCH_ID).resume());
}

/** Asks once more when a batch on a busy machine did not answer in time, as the error advises. */
async function answered(ask: () => Promise<unknown>): Promise<void> {
  for (let asked = 1; ; asked += 1) {
    try {
      await ask();
      return;
    } catch (error) {
      if (!hasCode(error, 'NO_ANSWER') || asked === 5) throw error;
      say('the batch did not answer in time: asked once more');
    }
  }
}

async function cancelAndResume(
  followUps: FollowUpClient,
  start: () => Promise<StartedBatch>,
  items: number,
): Promise<void> {
  await settled(followUps, (2 * items) / 3);
  await followUps.batches.getHandle(BATCH_ID).cancel();
  const { state, summary } = await followUps.batches.getHandle(BATCH_ID).result();
  say(`${state} with ${summary?.settled ?? 0} settled`);
  const { resumedAfter } = await start();
  say(`started again after it was ${String(resumedAfter)}`);
}

const program = new Command('bench:batch')
  .description('measures a large batch, with one of two workers killed in the middle')
  .argument('[items]', 'how many follow-ups', wholeNumber(MAX_BATCH_ITEMS), 5_000)
  .option('--concurrency <n>', 'how many are open at a time', wholeNumber(CONCURRENCY.maximum), 500)
  .option('--projects <n>', 'over how many projects', wholeNumber(1_000), 20)
  .option('--continue-at <events>', 'the batch continues as new at so many events', wholeNumber(50_000))
  .option('--steer', 'attach, pause, resume, cancel and run again on the way', false)
  .parse();
const [items = 5_000] = program.processedArgs as [number?];
const options = program.opts<Omit<Options, 'items'> & { readonly continueAt?: number }>();
const { continueAt } = options;
runBench(
  (ground, machine) => measure(ground, machine, { ...options, items }),
  continueAt === undefined ? {} : { 'limit.historyCount.suggestContinueAsNew': continueAt },
);
