/**
 * A large batch: `npm run bench:batch [-- N] [--concurrency C] [--steer]`. N items (5,000) over twenty projects, two worker
 * processes of which one is killed in the middle, a service that loses some messages and lacks some jobs. With `--steer`
 * the batch is also attached to, paused, resumed, cancelled and run again on the way. Every item is looked for in the
 * sandbox's journal.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { FollowUpClient, hasCode, type StartedBatch } from '../../src/entries/client';
import { DEFAULT_TASK_QUEUES } from '../../src/contract/names';
import { listPollingWorkers } from '../../src/temporal/sdk-internals';
import { BATCH_ID, countBatchEvents, checkByJournal, newRequest } from './batch-items';
import { ours } from './subjects';
import { type BenchEnvironment, IN_CONTAINER } from './bench-environment';
import { memoryMib } from './process-usage';
import { report, runBench, printProgress, wholeNumber } from './run';

interface Options {
  readonly concurrency: number;
  readonly steer: boolean;
}

async function measure(
  environment: BenchEnvironment,
  items: number,
  { concurrency, steer }: Options,
): Promise<void> {
  const { client } = environment;
  const { batches } = new FollowUpClient(client);
  const requests = Array.from({ length: items }, (_, index) => newRequest(environment, index));
  const staying = await environment.startWorker(ours, IN_CONTAINER);
  const killed = await environment.startWorker(ours, IN_CONTAINER);
  while ((await listPollingWorkers(client, DEFAULT_TASK_QUEUES.followUp)).length < 2) await sleep(500);

  const startedAt = performance.now();
  const elapsed = () => (performance.now() - startedAt) / 1_000;
  const start = () => batches.start(requests, { batchId: BATCH_ID, concurrency });
  const batch = await start();
  const handedOverSeconds = elapsed();
  const ended = async (share: number) => {
    for (let reportedCount = -1; ;) {
      const now = (await batch.progress()).summary?.ended ?? 0;
      if (now >= reportedCount + items / 20 || now >= share * items)
        printProgress(`${(reportedCount = now)} of ${items} ended`);
      if (now >= share * items) return;
      await sleep(1_000);
    }
  };
  if (steer) {
    await ended(1 / 5);
    printProgress(`started once more: attached to what is ${String((await start()).attached)}`);
    await ended(1 / 3);
    await retryOnTimeout(() => batch.pause());
    printProgress('paused for twenty seconds');
    await sleep(20_000);
    await retryOnTimeout(() => batch.resume());
  }
  await ended(1 / 2);
  process.kill(killed, 'SIGKILL');
  printProgress('one of the two workers was killed');
  if (steer) await cancelAndResume(batch, start, () => ended(2 / 3));
  const { state, summary } = await batch.result();
  const seconds = elapsed();
  if (state !== 'done') throw new Error(`the batch is ${state}`);

  const ends = await batch.listResults();
  const truth = checkByJournal(environment, requests, ends);
  const events = await countBatchEvents(environment);
  report('bench-batch.json', {
    ...{ items, concurrency, seconds, itemsPerSecond: items / seconds, handedOverSeconds },
    ...{ batchEvents: events, eventsAnItem: events / items, workerPeakMib: (await memoryMib(staying)).peak },
    ...{ ...truth, ...summary?.byStatus, ...summary?.byFailure },
  });
  if (truth.sentTwice > 0 || truth.accountedFor !== items || ends.length !== items)
    throw new Error('not every item was sent once or told');
}

async function cancelAndResume(
  batch: StartedBatch,
  start: () => Promise<StartedBatch>,
  until: () => Promise<void>,
): Promise<void> {
  await until();
  await batch.cancel();
  const { state, summary } = await batch.result();
  printProgress(`${state} with ${summary?.ended ?? 0} ended`);
  printProgress(`started again after it was ${String((await start()).resumedAfter)}`);
}

/** Asks once more when a batch on a busy machine did not answer in time, as the error advises. */
async function retryOnTimeout(call: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await call();
      return;
    } catch (error) {
      if (!hasCode(error, 'WAIT_TIMEOUT') || attempt === 5) throw error;
      printProgress('the batch did not answer in time: asked once more');
    }
  }
}

const program = new Command('npm run bench:batch --')
  .argument('[items]', 'how many follow-ups', wholeNumber, 5_000)
  .option('--concurrency <n>', 'how many are open at a time', wholeNumber, 500)
  .option('--steer', 'attach, pause, resume, cancel and run again on the way', false)
  .parse();
runBench((environment) => measure(environment, program.processedArgs[0] as number, program.opts<Options>()));
