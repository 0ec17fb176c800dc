import { describe, expect, it } from '@jest/globals';
import { jsonl, jsonLines } from './batch-file';
import { BatchOfTest, LARGE } from '../../harness/batch-of-test';
import { ENDLESS } from '../../harness/following';
import { PATIENT, ProcessEnvironment } from '../../harness/process-environment';
import { temporal } from '../../harness/temporal';
import { TemporalGate } from '../../harness/temporal-gate';
import { StarterProcess } from '../../harness/starter-process';

/** {@link PATIENT} as flags, with quicker reads. */
const FLAGS = [
  ...['--deadline', PATIENT.deadline, '--reconcile', PATIENT.reconcile],
  ...['--settle', PATIENT.settle, '--confirm', PATIENT.confirm, '--polling-initial', '500ms'],
];

function start(
  environment: ProcessEnvironment,
  args: readonly string[],
  stdin = '',
  address?: string,
): StarterProcess {
  const env = {
    FOLLOW_UP_TASK_QUEUE: environment.taskQueue,
    TEMPORAL_ADDRESS: address ?? temporal().address,
  };
  return StarterProcess.start(args, env, stdin);
}

/** Lets two of twelve pages through to the server, and holds the others on their way. */
async function holdingPages(gate: TemporalGate): Promise<void> {
  const held = ['1', '4', '5', '6', '7', '8', '9'];
  const holds = held.map((first) => gate.hold('StartWorkflowExecution', 'call', `:page-${first}`));
  await Promise.all(holds.map((hold) => hold.arrived()));
}

describe('batch run as a process', () => {
  it.concurrent.each([
    ['SIGKILL', { code: null, signal: 'SIGKILL' }],
    ['SIGINT', { code: 130, stderr: expect.stringContaining('Stopped during the hand-over: 2 of 12 pages') }],
  ] as const)(
    'ended by %s while it hands over pages, hands over the rest when it is run again',
    async (signal, expected) => {
      const gate = await TemporalGate.open(temporal().address);
      await ProcessEnvironment.with({}, async (environment) => {
        await environment.startWorker();
        const file = new BatchOfTest(environment);
        file.addMany(12, {}, { prompt: LARGE });
        const words = ['batch', 'run', '-', '--batch-id', file.batchId, ...FLAGS];
        const first = start(environment, words, jsonl(file), gate.address);
        const holding = holdingPages(gate);
        await first.says(/handed over 2 of 12 pages/);
        await holding;
        first.signal(signal);
        expect(await first.ended()).toMatchObject(expected);
        await file.progressWhen(({ pages }) => pages.handedOver === 2);
        const second = await start(environment, [...words, '--json'], jsonl(file)).ended();
        expect(second).toMatchObject({ code: 0, stderr: expect.stringContaining('this batch is running') });
        expect(jsonLines(second.stdout).slice(0, -1)).toHaveLength(12);
        expect(file.messages()).toEqual(Array(12).fill(1));
      }).finally(() => gate.close());
    },
  );

  it.concurrent('ends with the reader of its results, and leaves the batch running', async () => {
    await ProcessEnvironment.with({}, async (environment) => {
      await environment.startWorker();
      const file = new BatchOfTest(environment);
      file.addMany(3, ENDLESS);
      const words = ['batch', 'run', '-', '--batch-id', file.batchId, ...FLAGS, '--json'];
      const reading = start(environment, words, jsonl(file));
      await file.sent(3);
      reading.closeStdout();
      // The line of the first end is the first one that nobody reads.
      file.endTurn({ projectId: file.projectId, jobId: file.requests[0]?.jobId ?? '' });
      expect(await reading.ended()).toMatchObject({ code: 141, signal: null });
      file.endTurns();
      expect(await start(environment, ['batch', 'watch', file.batchId]).ended()).toMatchObject({ code: 0 });
    });
  });
});

it('without its worker, results and retry name the task queue, and results print what the server knows', async () => {
  await ProcessEnvironment.with({}, async (environment) => {
    const worker = await environment.startWorker();
    const file = new BatchOfTest(environment);
    file.add();
    file.add(ENDLESS);
    const words = ['batch', 'run', '-', '--batch-id', file.batchId, ...FLAGS, '--no-wait'];
    await start(environment, words, jsonl(file)).ended();
    await file.progressWhen(({ settled }) => settled === 1);
    await worker.stop();
    const results = await start(environment, ['batch', 'results', file.batchId]).ended();
    expect(results).toMatchObject({ code: 1, stdout: '' });
    expect(results.stderr).toContain('0 settled (follow-ups: ');
    expect(results.stderr).toMatch(/Completed × 1/);
    const problem = `Some ends of the batch "${file.batchId}" can't be read now: the worker on the task queue "${environment.taskQueue}"`;
    expect(results.stderr).toContain(problem);
    await file.terminate();
    const retry = await start(environment, ['batch', 'retry', file.batchId]).ended();
    expect(retry).toMatchObject({ code: 1, stderr: expect.stringContaining(problem) });
    expect(file.posts()).toHaveLength(2);
  });
});
