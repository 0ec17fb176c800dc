/**
 * Measures a large batch: `npm run bench:batch -- [N] [--concurrency C] [--steer]`. The batch has N items (5,000) in twenty projects. One
 * of two worker processes is killed in the middle. The agent service loses some messages, and some jobs do not exist. With `--steer`, the
 * benchmark also attaches to the batch, pauses, resumes and cancels it, and runs it again. The benchmark checks every item in the sandbox's
 * journal.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { FollowUpClient, hasCode, type StartedBatch } from '../../src/entries/client';
import { DEFAULT_TASK_QUEUES } from '../../src/contract/names';
import { listPollingWorkers } from '../../src/temporal/raw-requests';
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
  while (((await listPollingWorkers(client, DEFAULT_TASK_QUEUES.followUp))?.length ?? 0) < 2)
    await sleep(500);

  const startedAt = performance.now();
  const elapsed = () => (performance.now() - startedAt) / 1_000;
  const start = () => batches.start(requests, { batchId: BATCH_ID, concurrency });
  const batch = await start();
  const submitSeconds = elapsed();
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
    printProgress(
      `started again: the start attached to the batch, which is ${String((await start()).attached)}`,
    );
    await ended(1 / 3);
    await retryOnTimeout(() => batch.pause());
    printProgress('paused for twenty seconds');
    await sleep(20_000);
    await retryOnTimeout(() => batch.resume());
  }
  await ended(1 / 2);
  process.kill(killed, 'SIGKILL');
  printProgress('killed one of the two workers');
  if (steer) await cancelAndResume(batch, start, () => ended(2 / 3));
  const { state, summary } = await batch.result();
  const seconds = elapsed();
  if (state !== 'done') throw new Error(`the batch is ${state}`);

  const results = await batch.listResults();
  const check = checkByJournal(environment, requests, results);
  const events = await countBatchEvents(environment);
  report('bench-batch.json', {
    ...{ items, concurrency, seconds, itemsPerSecond: items / seconds, submitSeconds },
    ...{ batchEvents: events, eventsPerItem: events / items, workerPeakMib: (await memoryMib(staying)).peak },
    ...{ ...check, ...summary?.byStatus, ...summary?.byFailure },
  });
  if (check.sentTwice > 0 || check.accountedFor !== items || results.length !== items)
    throw new Error('an item was sent twice, or its reported outcome differs from the journal');
}

async function cancelAndResume(
  batch: StartedBatch,
  start: () => Promise<StartedBatch>,
  until: () => Promise<void>,
): Promise<void> {
  await until();
  await batch.cancel();
  const { state, summary } = await batch.result();
  printProgress(`the batch is ${state}; ${summary?.ended ?? 0} items have ended`);
  printProgress(`started again; the previous state was ${String((await start()).resumedAfter)}`);
}

/** Repeats a call if the batch did not respond in time on a busy machine, as the error advises. */
async function retryOnTimeout(call: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await call();
      return;
    } catch (error) {
      if (!hasCode(error, 'WAIT_TIMEOUT') || attempt === 5) throw error;
      printProgress('the batch did not respond in time; repeating the call');
    }
  }
}

const program = new Command('npm run bench:batch --')
  .argument('[items]', 'number of items', wholeNumber, 5_000)
  .option('--concurrency <n>', 'maximum number of items that run at the same time', wholeNumber, 500)
  .option('--steer', 'attach to the batch, pause, resume and cancel it, and run it again', false)
  .parse();
runBench((environment) => measure(environment, program.processedArgs[0] as number, program.opts<Options>()));
