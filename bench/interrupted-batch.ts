/**
 * A batch that is larger than what one runs to its end: `npm run bench:interrupted [-- N] [--concurrency C]`. N items
 * (100,000) are handed over by the starter, a tenth of them is sent, the batch is terminated, run again from its file, and
 * cancelled with what runs. Every item is looked for in the sandbox's journal. It prints what each step has taken, with the
 * memory of the starter and the worker, and leaves it in `reports/bench-interrupted.json`.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { FollowUpClient, type ItemEnd } from '../src/client';
import { CONCURRENCY, MAX_BATCH_ITEMS } from '../src/core/batch/items';
import { batchWorkflowId } from '../src/core/ids';
import { FOLLOW_UP_WORKFLOW } from '../src/core/names';
import { stripTemporalEnv } from '../dev/dev-server';
import { freePorts } from '../dev/free-ports';
import { BATCH_ID, checkByJournal, historiesOf, requestOf, settled, wholeNumber } from './batch-items';
import { ours } from './contestants';
import type { Ground } from './ground';
import { describeMachine, type MachineFacts } from './machine';
import { MemoryWatch } from './memory-watch';
import { peakBytes } from './process-usage';
import { runBench, say, writeReport } from './run';

const STARTER = path.resolve(__dirname, '../dist/starter.js');

/** More than what a batch that was terminated may still start: the one that goes on has begun. */
const CERTAINLY_NEW = 20;

interface Options {
  readonly items: number;
  readonly concurrency: number;
  readonly projects: number;
}

interface Step {
  readonly name: string;
  readonly seconds: number;
  /** Of the starter, where the step has one. */
  readonly starterPeakMib?: number;
  /** Items that were begun, and those that had ended, by the server's list. */
  readonly begun: number;
  readonly ended: number;
}

async function measure(ground: Ground, machine: MachineFacts, options: Options): Promise<void> {
  const { items, concurrency, projects } = options;
  const folder = mkdtempSync(path.join(tmpdir(), 'bench-interrupted-'));
  try {
    const requests = Array.from({ length: items }, (_, index) => requestOf(ground, index, projects));
    const file = path.join(folder, 'items.jsonl');
    writeFileSync(file, requests.map((request) => `${JSON.stringify(request)}\n`).join(''));
    const [metricsPort = 0] = await freePorts(1);
    const metrics = `127.0.0.1:${metricsPort}`;
    const worker = await ground.startWorker(ours, { FOLLOW_UP_METRICS_ADDRESS: metrics });
    const memory = new MemoryWatch(worker, metrics, ground.server.pid);

    const run = ['run', file, '--batch-id', BATCH_ID, '--concurrency', String(concurrency), '--no-wait'];
    const steps: Step[] = [];
    const step = async (name: string, work: () => Promise<{ starterPeakMib: number } | undefined>) => {
      memory.phase = name;
      const before = performance.now();
      const usage = await work();
      const seconds = (performance.now() - before) / 1_000;
      const [begun, ended] = [await countOf(ground, ''), await countOf(ground, ' AND CloseTime IS NOT NULL')];
      steps.push({ name, seconds, ...usage, begun, ended });
      say(`${name}: ${seconds.toFixed(1)} s; ${begun} items begun, ${ended} ended`);
    };
    const followUps = new FollowUpClient(ground.client);
    await step('handed over', () => starter(ground, run));
    await step('a tenth ended', async () => {
      await settled(followUps, items / 10);
      return undefined;
    });
    await step('terminated', async () => {
      await ground.client.workflow.getHandle(batchWorkflowId(BATCH_ID)).terminate('the bench');
      return undefined;
    });
    const terminatedAt = steps.at(-1)?.begun ?? 0;
    await step('run again', () => starter(ground, run));
    await step('new items begun', async () => {
      while ((await countOf(ground, '')) < terminatedAt + CERTAINLY_NEW) await sleep(500);
      return undefined;
    });
    await step('a fiftieth more', async () => {
      await settled(followUps, items / 10 + items / 50);
      return undefined;
    });
    await step('cancelled', () => starter(ground, ['cancel', '--cancel-running', BATCH_ID]));
    const resultsFile = path.join(folder, 'results.jsonl');
    await step('results', () => starter(ground, ['results', BATCH_ID, '--json'], resultsFile));
    await memory.stop();

    const lines = readFileSync(resultsFile, 'utf8').trim().split('\n').slice(0, -1);
    const ends = lines.map((line) => JSON.parse(line) as ItemEnd);
    const truth = checkByJournal(ground, requests, ends);
    const figures = {
      ...{ items, concurrency, fileMib: Buffer.byteLength(readFileSync(file)) / 2 ** 20 },
      ...(await historiesOf(ground, ends.length)),
      workerPeakRssMib: Math.max(...memory.samples.map(({ workerRssMib }) => workerRssMib)),
      ...truth,
    };
    const report = writeReport('bench-interrupted.json', { machine, figures, steps });
    console.log(`\n${describeMachine(machine)}\n`);
    console.table(steps);
    console.table(figures);
    console.log(`Took ${Math.round(process.uptime())} s; ${report}`);
    const begun = steps.at(-1)?.begun;
    if (truth.sentTwice > 0 || truth.accountedFor !== items || truth.ended !== begun)
      throw new Error('not every item was sent once or told');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The follow-ups of the batch by the server's list. */
async function countOf({ client }: Ground, restriction: string): Promise<number> {
  const ofBatch = `WorkflowType = '${FOLLOW_UP_WORKFLOW}' AND FollowUpBatch = '${BATCH_ID}'`;
  return (await client.workflow.count(ofBatch + restriction)).count;
}

/** Runs the compiled starter to its end. @throws Error when it fails */
async function starter(
  ground: Ground,
  args: readonly string[],
  outputFile?: string,
): Promise<{ starterPeakMib: number }> {
  const child = spawn(process.execPath, [STARTER, 'batch', ...args], {
    env: { ...stripTemporalEnv(process.env), TEMPORAL_ADDRESS: ground.server.address },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const output: Buffer[] = [];
  child.stdout.on('data', (data: Buffer) => output.push(data));
  let starterPeakMib = 0;
  const sampling = setInterval(() => {
    void peakBytes(child.pid ?? 0).then(
      (bytes) => {
        // One that has just ended has no memory any more.
        if (bytes > 0) starterPeakMib = Math.max(starterPeakMib, bytes / 2 ** 20);
      },
      () => undefined,
    );
  }, 50);
  const code = await new Promise((resolve) => child.on('close', resolve));
  clearInterval(sampling);
  if (outputFile !== undefined) writeFileSync(outputFile, Buffer.concat(output));
  // A batch that was cancelled has an exit code of its own.
  if (code !== 0 && code !== 24) throw new Error(`the starter ended with ${String(code)}: ${args.join(' ')}`);
  return { starterPeakMib };
}

const program = new Command('bench:interrupted')
  .description('measures the steps of a batch that is terminated, run again and cancelled')
  .argument('[items]', 'how many follow-ups', wholeNumber(MAX_BATCH_ITEMS), MAX_BATCH_ITEMS)
  .option('--concurrency <n>', 'how many are open at a time', wholeNumber(CONCURRENCY.maximum), 500)
  .option('--projects <n>', 'over how many projects', wholeNumber(1_000), 20)
  .parse();
const [items = MAX_BATCH_ITEMS] = program.processedArgs as [number?];
runBench((ground, machine) => measure(ground, machine, { ...program.opts<Omit<Options, 'items'>>(), items }));
