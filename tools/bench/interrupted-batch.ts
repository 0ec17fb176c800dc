/**
 * A large batch that is interrupted: `npm run bench:interrupted [-- N]`. N items (100,000) are handed over by the starter, a
 * tenth of them is sent, the batch is terminated, run again from its file, and cancelled with what runs. Every item is
 * looked for in the sandbox's journal. It prints what each step has taken, with the memory of starter and worker.
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

/** More than what a batch that was terminated may still start: the one that goes on has begun. */
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
      const done = await work();
      const seconds = (performance.now() - before) / 1_000;
      printProgress(`${name}: ${seconds.toFixed(1)} s`);
      steps[name] = { seconds, begun: await countStarted(), ended: await ended() };
      return done;
    };
    const peaks: number[] = [];
    const starter = async (...args: string[]) => {
      const { peakMib, output } = await runStarter(environment, args);
      peaks.push(peakMib);
      return output;
    };
    await step('handed over', () => starter(...run));
    await step('a tenth has ended', () => until(ended, items / 10));
    const { workflow } = environment.client;
    await step('terminated', () => workflow.getHandle(batchWorkflowId(BATCH_ID)).terminate('the bench'));
    const terminatedAt = await countStarted();
    await step('run again', () => starter(...run));
    await step('new items have begun', () => until(countStarted, terminatedAt + CERTAINLY_NEW));
    await step('a fiftieth more has ended', () => until(ended, items / 10 + items / 50));
    await step('cancelled', () => starter('cancel', '--cancel-running', BATCH_ID));
    // Its last follow-ups may still be on their way to their ends.
    await until(ended, await countStarted());
    const results = await step('results', () => starter('results', BATCH_ID, '--json'));

    const lines = results.trim().split('\n').slice(0, -1);
    const ends = lines.map((line) => JSON.parse(line) as BatchItemResult);
    const truth = checkByJournal(environment, requests, ends);
    report('bench-interrupted.json', {
      ...steps,
      items,
      endedItems: ends.length,
      batchEvents: await countBatchEvents(environment),
      starterPeakMib: Math.max(...peaks),
      workerPeakMib: (await memoryMib(worker)).peak,
      ...truth,
    });
    if (truth.sentTwice > 0 || truth.accountedFor !== items || ends.length !== (await countStarted()))
      throw new Error('not every item was sent once or told');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The follow-ups of the batch by the server's list. */
async function countFollowUps({ client }: BenchEnvironment, restriction: string): Promise<number> {
  const ofBatch = `WorkflowType = '${FOLLOW_UP_WORKFLOW}' AND FollowUpBatch = '${BATCH_ID}'`;
  return (await client.workflow.count(ofBatch + restriction)).count;
}

/** Runs the compiled starter to its end. @throws Error when it fails */
async function runStarter(environment: BenchEnvironment, args: readonly string[]) {
  const child = spawn(process.execPath, [STARTER, 'batch', ...args], {
    env: { ...stripTemporalEnv(process.env), TEMPORAL_ADDRESS: environment.server.address },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const output: Buffer[] = [];
  child.stdout.on('data', (data: Buffer) => output.push(data));
  let peakMib = 0;
  // One that has just ended has no memory any more.
  const sampleMemory = async () => (peakMib = Math.max(peakMib, (await memoryMib(child.pid ?? 0)).peak || 0));
  const sampling = setInterval(() => void sampleMemory().catch(() => undefined), 50);
  const code = await new Promise((resolve) => child.on('close', resolve));
  clearInterval(sampling);
  // A batch that was cancelled has an exit code of its own.
  if (code !== 0 && code !== 24) throw new Error(`the starter ended with ${String(code)}: ${args.join(' ')}`);
  return { peakMib, output: Buffer.concat(output).toString() };
}

const program = new Command('npm run bench:interrupted --')
  .argument('[items]', `how many follow-ups, ${MAX_BATCH_ITEMS} at most`, wholeNumber, MAX_BATCH_ITEMS)
  .parse();
runBench((environment) => measure(environment, program.processedArgs[0] as number));
