/**
 * Measures a large batch that is interrupted: `npm run bench:interrupted [-- N]`. The CLI submits N items (100,000). After a tenth of the
 * items has ended, the batch is terminated, run again from its file, and cancelled together with its running follow-ups. The benchmark
 * checks every item in the sandbox's journal. The output has the duration of each step, and the memory of the CLI and the worker.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { stripTemporalEnv } from '../lib/dev-server';
import type { BatchItemResult } from '../../src/entries/client';
import { MAX_BATCH_ITEMS } from '../../src/batch/items';
import { batchWorkflowId } from '../../src/contract/ids';
import { FOLLOW_UP_WORKFLOW } from '../../src/contract/names';
import { BATCH_ID, countBatchEvents, checkByJournal, newRequest } from './batch-items';
import { ours } from './subjects';
import { type BenchEnvironment, IN_CONTAINER } from './bench-environment';
import { memoryMib } from './process-usage';
import { report, runBench, printProgress, wholeNumber } from './run';

const STARTER = path.resolve(__dirname, '../../dist/starter.js');

const CONCURRENCY = 500;

/** After its termination, a batch starts fewer items than this number. Further starts are therefore from the continued batch. */
const CERTAINLY_NEW = 20;

async function measure(environment: BenchEnvironment, items: number): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'bench-interrupted-'));
  try {
    const requests = Array.from({ length: items }, (_, index) => newRequest(environment, index));
    const file = path.join(folder, 'items.jsonl');
    writeFileSync(file, requests.map((request) => `${JSON.stringify(request)}\n`).join(''));
    const worker = await environment.startWorker(ours, IN_CONTAINER);

    const run = ['run', file, '--batch-id', BATCH_ID, '--concurrency', String(CONCURRENCY), '--no-wait'];
    const countStarted = () => countFollowUps(environment, '');
    const ended = () => countFollowUps(environment, ' AND CloseTime IS NOT NULL');
    const until = async (count: () => Promise<number>, wanted: number) => {
      while ((await count()) < wanted) await sleep(1_000);
    };
    const steps: Record<string, object> = {};
    const step = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
      const before = performance.now();
      const result = await work();
      const seconds = (performance.now() - before) / 1_000;
      printProgress(`${name}: ${seconds.toFixed(1)} s`);
      steps[name] = { seconds, started: await countStarted(), ended: await ended() };
      return result;
    };
    const peaks: number[] = [];
    const starter = async (...args: string[]) => {
      const { peakMib, output } = await runStarter(environment, args);
      peaks.push(peakMib);
      return output;
    };
    await step('submitted', () => starter(...run));
    await step('a tenth has ended', () => until(ended, items / 10));
    const { workflow } = environment.client;
    await step('terminated', () => workflow.getHandle(batchWorkflowId(BATCH_ID)).terminate('the bench'));
    const terminatedAt = await countStarted();
    await step('run again', () => starter(...run));
    await step('new items have started', () => until(countStarted, terminatedAt + CERTAINLY_NEW));
    await step('another fiftieth has ended', () => until(ended, items / 10 + items / 50));
    await step('cancelled', () => starter('cancel', '--cancel-running', BATCH_ID));
    // The last follow-ups may still be running, because a cancellation takes time.
    await until(ended, await countStarted());
    const results = await step('results', () => starter('results', BATCH_ID, '--json'));

    const lines = results.trim().split('\n').slice(0, -1);
    const itemResults = lines.map((line) => JSON.parse(line) as BatchItemResult);
    const check = checkByJournal(environment, requests, itemResults);
    report('bench-interrupted.json', {
      ...steps,
      items,
      endedItems: itemResults.length,
      batchEvents: await countBatchEvents(environment),
      starterPeakMib: Math.max(...peaks),
      workerPeakMib: (await memoryMib(worker)).peak,
      ...check,
    });
    if (check.sentTwice > 0 || check.accountedFor !== items || itemResults.length !== (await countStarted()))
      throw new Error('an item was sent twice, or its reported outcome differs from the journal');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Counts the follow-ups of the batch in the Temporal server's visibility list. */
async function countFollowUps({ client }: BenchEnvironment, restriction: string): Promise<number> {
  const batchQuery = `WorkflowType = '${FOLLOW_UP_WORKFLOW}' AND FollowUpBatch = '${BATCH_ID}'`;
  return (await client.workflow.count(batchQuery + restriction)).count;
}

/** Runs the compiled CLI to its end. @throws Error if the CLI fails */
async function runStarter(environment: BenchEnvironment, args: readonly string[]) {
  const child = spawn(process.execPath, [STARTER, 'batch', ...args], {
    env: { ...stripTemporalEnv(process.env), TEMPORAL_ADDRESS: environment.server.address },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const output: Buffer[] = [];
  child.stdout.on('data', (data: Buffer) => output.push(data));
  let peakMib = 0;
  // A process that has just ended has no memory, so its figures are not used.
  const sampleMemory = async () => (peakMib = Math.max(peakMib, (await memoryMib(child.pid ?? 0)).peak || 0));
  const sampling = setInterval(() => void sampleMemory().catch(() => undefined), 50);
  const code = await new Promise((resolve) => child.on('close', resolve));
  clearInterval(sampling);
  // The exit code of a cancelled batch is 24.
  if (code !== 0 && code !== 24)
    throw new Error(`the CLI exited with the code ${String(code)}: ${args.join(' ')}`);
  return { peakMib, output: Buffer.concat(output).toString() };
}

const program = new Command('npm run bench:interrupted --')
  .argument('[items]', `number of items, at most ${MAX_BATCH_ITEMS}`, wholeNumber, MAX_BATCH_ITEMS)
  .parse();
runBench((environment) => measure(environment, program.processedArgs[0] as number));
