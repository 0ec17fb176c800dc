import { describe, expect, it } from '@jest/globals';
import { FollowUpClient } from '../../src/client';
import { BatchFile, jsonLines } from '../client/commands/batch-file';
import { eventually } from '../harness/eventually';
import { PATIENT, ProcessEnvironment } from '../harness/process-environment';
import { temporal } from '../harness/temporal';
import { TemporalGate } from '../harness/temporal-gate';
import { StarterProcess } from '../process/starter/starter-process';

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

/** 300 follow-ups take half a minute on two cores, and twice that on a busy machine. */
const LARGE_BATCH_MS = 180_000;

/** Two of the starters, a worker and twelve pages of 256 KiB through a gate: half a minute, four tests at once. */
const HAND_OVER_MS = 150_000;

/** A message that fills a page of a batch by itself. */
const LARGE = 'x'.repeat(256 * 1_024);

/** Lets two of twelve pages through to the server, and holds the others on their way. */
async function holdingPages(gate: TemporalGate): Promise<void> {
  const held = ['1', '4', '5', '6', '7', '8', '9'];
  const holds = held.map((first) => gate.hold('StartWorkflowExecution', 'call', `:page-${first}`));
  await Promise.all(holds.map((hold) => hold.arrived()));
}

/** Waits until so many pages have come to the batch. @throws Error when they don't within 20 seconds */
async function untilHandedOver(
  environment: ProcessEnvironment,
  batchId: string,
  pages: number,
): Promise<void> {
  const { batches } = new FollowUpClient(environment.client, { taskQueue: environment.taskQueue });
  await eventually(`${pages} pages are handed over`, async () => {
    const report = await batches.getHandle(batchId).progress();
    return report.from === 'worker' && report.progress.pages.handedOver === pages;
  });
}

describe('batch run as a process', () => {
  it(
    'takes 300 items of six projects to their ends, whatever happens to some of them',
    async () => {
      await ProcessEnvironment.with({ sandbox: { turnMs: 500 } }, async (environment) => {
        await environment.startWorker();
        const file = new BatchFile(environment);
        // The turn of the message whose answer is lost outlasts confirm, however busy the machine is.
        const add = (index: number) =>
          file.add(
            index === 102 ? { durationMs: 15_000 } : { durationMs: 500 },
            `Item ${index}.`,
            `${file.batchId}-${index % 6}`,
          );
        const jobs = Array.from({ length: 290 }, (_, index) => add(index));
        // Ten more items, to jobs that have one already.
        for (const { projectId, jobId } of jobs.slice(0, 10)) {
          file.lines.push({ project: projectId, job: jobId, prompt: 'Once more.' });
        }
        const { sandbox } = environment;
        const [rejected, lost, arrived, busy, gone] = jobs.slice(100);
        const once = { operation: 'message', times: 1 } as const;
        sandbox.setFault({ name: 'status', ...rejected, ...once, parameters: { code: 422 } });
        sandbox.setFault({ name: 'reset', ...lost, ...once });
        sandbox.setFault({ name: 'processed-then-close', ...arrived, ...once });
        sandbox.setFault({ name: 'http-429', ...busy, ...once });
        sandbox.setFault({ name: 'not-found', ...gone, operation: 'get' });
        const words = ['batch', 'run', '-', '--batch-id', file.batchId, ...FLAGS, '--json'];
        const { code, stdout } = await start(environment, words, file.csv).ended();
        expect(code).toBe(0);
        const lines = jsonLines(stdout);
        expect(lines.at(-1)).toMatchObject({
          state: 'done',
          summary: {
            items: 300,
            settled: 300,
            byStatus: { completed: 297 },
            byFailure: { FollowUpRejected: 1, DeliveryUnknown: 1, JobNotFound: 1 },
            unknownDeliveries: 1,
          },
        });
        const items = lines.slice(0, -1);
        expect(new Set(items.map(({ workflowId }) => workflowId)).size).toBe(300);
        // Nothing twice: of each message at most one was processed, and every item is one of these or was told.
        const processed = sandbox.journal
          .entries({ operation: 'message', processed: true })
          .map(({ projectId, jobId, prompt }) => [projectId, jobId, prompt?.text].join());
        expect(new Set(processed).size).toBe(processed.length);
        expect(processed).toHaveLength(297);
        for (const { projectId, jobId } of jobs.slice(0, 10)) {
          const posts = sandbox.journal.entries({ projectId, jobId, operation: 'message' });
          expect(posts.map(({ prompt }) => prompt?.text)).toEqual([
            expect.stringMatching(/^Item/),
            'Once more.',
          ]);
        }
      });
    },
    LARGE_BATCH_MS,
  );

  it.concurrent.each([
    ['SIGKILL', { code: null, signal: 'SIGKILL' }],
    ['SIGINT', { code: 130, stderr: expect.stringContaining('Stopped during the hand-over: 2 of 12 pages') }],
  ] as const)(
    'ended by %s while it hands over pages, hands over the rest when it is run again',
    async (signal, expected) => {
      const gate = await TemporalGate.open(temporal().address);
      await ProcessEnvironment.with({}, async (environment) => {
        await environment.startWorker();
        const file = new BatchFile(environment);
        for (let item = 0; item < 12; item += 1) file.add({ durationMs: 300 }, LARGE);
        const words = ['batch', 'run', '-', ...FLAGS];
        const first = start(environment, words, file.jsonl, gate.address);
        const holding = holdingPages(gate);
        await first.says(/handed over 2 of 12 pages/);
        await holding;
        first.signal(signal);
        expect(await first.ended()).toMatchObject(expected);
        const [, batchId = ''] = /^batch {7}(\w+) \(12 items\)$/m.exec(first.stderr) ?? [];
        await untilHandedOver(environment, batchId, 2);
        const second = await start(environment, [...words, '--json'], file.jsonl).ended();
        expect(second).toMatchObject({ code: 0, stderr: expect.stringContaining('this batch is running') });
        expect(jsonLines(second.stdout).slice(0, -1)).toHaveLength(12);
        const sent = file.posts().map(({ jobId }) => jobId);
        expect(sent.sort()).toEqual(file.lines.map(({ job }) => job).sort());
      }).finally(() => gate.close());
    },
    HAND_OVER_MS,
  );

  it.concurrent('ends with the reader of its results, and leaves the batch running', async () => {
    await ProcessEnvironment.with({}, async (environment) => {
      await environment.startWorker();
      const file = new BatchFile(environment);
      for (let item = 0; item < 3; item += 1) file.add(null);
      const words = ['batch', 'run', '-', '--batch-id', file.batchId, ...FLAGS, '--json'];
      const reading = start(environment, words, file.jsonl);
      await file.sent(3);
      reading.closeStdout();
      // The line of the first end is the first one that nobody reads.
      const [first] = file.posts();
      environment.sandbox.changeJob(
        { projectId: first?.projectId ?? '', jobId: first?.jobId ?? '' },
        { status: 'completed' },
      );
      expect(await reading.ended()).toMatchObject({ code: 141, signal: null });
      file.endTurns();
      expect(await start(environment, ['batch', 'watch', file.batchId]).ended()).toMatchObject({ code: 0 });
    });
  });

  it.concurrent.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('leaves the batch running at %s and says how to come back', async (signal, code) => {
    await ProcessEnvironment.with({}, async (environment) => {
      await environment.startWorker();
      const file = new BatchFile(environment);
      file.add(null);
      file.add(null);
      const words = ['batch', 'run', '-', '--batch-id', file.batchId, ...FLAGS];
      const left = start(environment, words, file.jsonl);
      await left.says('0 of 2 · 0 %');
      await file.sent(2);
      left.signal(signal);
      const ended = await left.ended();
      expect(ended).toMatchObject({ code, signal: null, stdout: '' });
      expect(ended.stderr).toContain(`npm run starter -- batch watch ${file.batchId}\n`);
      file.endTurns();
      expect(await start(environment, ['batch', 'watch', file.batchId]).ended()).toMatchObject({ code: 0 });
      expect(file.posts()).toHaveLength(2);
    });
  });
});
