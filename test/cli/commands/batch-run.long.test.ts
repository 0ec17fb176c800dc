import { afterAll, expect, it } from '@jest/globals';
import { jsonl, jsonLines } from './run-cli';
import { type TestBatch, LARGE_PROMPT } from '../../harness/test-batch';
import { eventually } from '../../../tools/lib/eventually';
import { ENDLESS_TURN } from '../../harness/follow-up-under-test';
import { collectWorkflowIds } from '../../harness/workflow-ids';
import { Program } from '../../harness/program';
import { sharedEnvironment } from '../../harness/shared-environment';
import { temporal } from '../../harness/temporal';
import { TemporalGate } from '../../harness/temporal-gate';

/** The programs of this file, which are killed at the end, because a failed test may leave a program running. */
const started: Program[] = [];
afterAll(() => started.forEach((program) => program.signal('SIGKILL')));
const { newBatch } = sharedEnvironment();

/** Starts the CLI as a process that runs a batch. */
function start(batch: TestBatch, flags: readonly string[] = [], TEMPORAL_ADDRESS = temporal().address) {
  const env = { FOLLOW_UP_TASK_QUEUE: batch.environment.taskQueue, TEMPORAL_ADDRESS };
  const run = ['batch', 'run', '-', '--batch-id', batch.batchId, ...flags];
  const program = Program.startCli(run, env, jsonl(batch));
  started.push(program);
  return program;
}

/**
 * Holds the starts of eight of a batch's twelve chunks before they reach the Temporal server, and waits until all eight are held.
 */
async function holdChunks(gate: TemporalGate): Promise<void> {
  const held = [1, 4, 5, 6, 7, 8, 9, 10];
  const holds = held.map((chunk) =>
    gate.hold('StartWorkflowExecution', 'call', `Chunk ${chunk} of the items`),
  );
  await Promise.all(holds.map((hold) => hold.waitForCall()));
}

// Proves B3.
it.concurrent.each([
  ['SIGKILL', { code: null, signal: 'SIGKILL' }],
  ['SIGINT', { code: 130, stderr: expect.stringContaining('Stopped. The batch was being submitted.') }],
] as const)(
  'batch run that is ended by %s while it stores the items starts no item; a second batch run sends each item once',
  async (signal, expected) => {
    const gate = await TemporalGate.open(temporal().address);
    const batch = await newBatch(12, {}, { prompt: LARGE_PROMPT });
    const runFirst = async () => {
      const first = start(batch, [], gate.address);
      await Promise.all([first.waitForOutput(/^batch /), holdChunks(gate)]);
      first.signal(signal);
      expect(await first.waitForEnd()).toMatchObject(expected);
    };
    await runFirst().finally(() => gate.close());
    await expect(batch.handle.progress()).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const second = await start(batch, ['--json']).waitForEnd();
    expect(second).toMatchObject({ code: 0, stderr: expect.not.stringContaining('attached') });
    expect(jsonLines(second.stdout).slice(0, -1)).toHaveLength(12);
    expect(batch.messageCounts()).toEqual(Array(12).fill(1));
    const openChunks = `WorkflowType = 'followUpBatchItems' AND FollowUpBatch = '${batch.batchId}' AND CloseTime IS NULL`;
    const open = () => collectWorkflowIds(batch.environment.client.workflow.list({ query: openChunks }));
    await eventually('the chunks have ended', async () => (await open()).length === 0);
  },
);

it.concurrent('batch run exits if the reader of its stdout ends, and the batch continues', async () => {
  const batch = await newBatch(3, ENDLESS_TURN);
  const reading = start(batch, ['--json']);
  await batch.waitUntilSent(3);
  reading.closeStdout();
  // The line of the first ended item is the first line without a reader.
  batch.endTurns(batch.requests.slice(0, 1));
  expect(await reading.waitForEnd()).toMatchObject({ code: 141, signal: null });
  expect(await batch.finish()).toMatchObject({ state: 'done', summary: { ended: 3 } });
});
