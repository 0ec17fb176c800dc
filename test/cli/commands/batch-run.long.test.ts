import { describe, expect, it } from '@jest/globals';
import { jsonl, jsonLines, SWIFT_FLAGS } from './starter';
import { BatchOfTest, LARGE } from '../../harness/batch-of-test';
import { eventually } from '../../harness/eventually';
import { ENDLESS } from '../../harness/following';
import { listed } from '../../harness/listed';
import { ProcessEnvironment } from '../../harness/process-environment';
import { temporal } from '../../harness/temporal';
import { TemporalGate } from '../../harness/temporal-gate';
import { Program } from '../../harness/program';

/** A batch of test, and the starter as a process that runs it. */
function batchOf(environment: ProcessEnvironment) {
  const batch = new BatchOfTest(environment);
  const start = (words: readonly string[], TEMPORAL_ADDRESS = temporal().address) => {
    const env = { FOLLOW_UP_TASK_QUEUE: environment.taskQueue, TEMPORAL_ADDRESS };
    return Program.starter(['batch', ...words], env, jsonl(batch));
  };
  return { batch, start, words: ['run', '-', '--batch-id', batch.batchId, ...SWIFT_FLAGS] };
}

/** Lets four of the twelve parts of a batch through to the server, and holds the others on their way. */
async function holdingParts(gate: TemporalGate): Promise<void> {
  const held = [1, 4, 5, 6, 7, 8, 9, 10];
  const holds = held.map((part) => gate.hold('StartWorkflowExecution', 'call', `Part ${part} of the items`));
  await Promise.all(holds.map((hold) => hold.arrived()));
}

describe('batch run as a process', () => {
  // Proves B3.
  it.concurrent.each([
    ['SIGKILL', { code: null, signal: 'SIGKILL' }],
    ['SIGINT', { code: 130, stderr: expect.stringContaining('Stopped during the hand-over.') }],
  ] as const)(
    'ended by %s while it stores the items has started nothing; run again, it sends each item once',
    async (signal, expected) => {
      const gate = await TemporalGate.open(temporal().address);
      await ProcessEnvironment.with({}, async (environment) => {
        await environment.startWorker();
        const { batch, start, words } = batchOf(environment);
        batch.addMany(12, {}, { prompt: LARGE });
        const first = start(words, gate.address);
        const holding = holdingParts(gate);
        await first.says(/^batch /);
        await holding;
        first.signal(signal);
        expect(await first.ended()).toMatchObject(expected);
        await expect(batch.handle.progress()).rejects.toMatchObject({ code: 'NOT_FOUND' });
        const second = await start([...words, '--json']).ended();
        expect(second).toMatchObject({ code: 0, stderr: expect.not.stringContaining('attached') });
        expect(jsonLines(second.stdout).slice(0, -1)).toHaveLength(12);
        expect(batch.messages()).toEqual(Array(12).fill(1));
        const parts = `WorkflowType = 'followUpBatchItems' AND FollowUpBatch = '${batch.batchId}' AND CloseTime IS NULL`;
        const open = () => listed(environment.client.workflow.list({ query: parts }));
        await eventually('its parts have ended', async () => (await open()).length === 0);
      }).finally(() => gate.close());
    },
  );

  it.concurrent('ends with the reader of its results, and leaves the batch running', async () => {
    await ProcessEnvironment.with({}, async (environment) => {
      await environment.startWorker();
      const { batch, start, words } = batchOf(environment);
      batch.addMany(3, ENDLESS);
      const reading = start([...words, '--json']);
      await batch.sent(3);
      reading.closeStdout();
      // The line of the first end is the first one that nobody reads.
      batch.endTurns(batch.requests.slice(0, 1));
      expect(await reading.ended()).toMatchObject({ code: 141, signal: null });
      batch.endTurns();
      expect(await start(['watch', batch.batchId]).ended()).toMatchObject({ code: 0 });
    });
  });
});
