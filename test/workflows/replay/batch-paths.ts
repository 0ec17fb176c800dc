import { eventually } from '../../../tools/lib/eventually';
import type { Environment } from '../../harness/environment';
import { TestBatch } from '../../harness/test-batch';
import { endless } from './follow-up-paths';

export type BatchPaths = Record<string, (environment: Environment) => Promise<TestBatch>>;

const FAILING = { turn: { outcome: 'failed', reads: 2 } } as const;

/** Starts a batch and waits for its end. A batch may also end as failed or as cancelled. */
async function run(batch: TestBatch, options: Parameters<TestBatch['start']>[0]): Promise<TestBatch> {
  await batch.start(options);
  await batch.handle.result();
  return batch;
}

/** Each function runs a batch that takes one path through the workflow, until the batch has ended. */
export const batchPaths: BatchPaths = {
  'batch-max-failures-exceeded': (environment) =>
    run(new TestBatch(environment).addItems(3, FAILING).addItems(2), {
      concurrency: 1,
      maxFailures: { items: 1 },
    }),
  'batch-resumed': async (environment) => {
    const batch = new TestBatch(environment).addItems(2).addItems(2, FAILING).addItems(2);
    await run(batch, { concurrency: 1, maxFailures: { items: 1 } });
    return run(batch, { concurrency: 3 });
  },
  'batch-retried': async (environment) => {
    const batch = new TestBatch(environment).addItems(2);
    batch.addItem({}, {}, { name: 'status', operation: 'message', times: 1, parameters: { code: 403 } });
    await run(batch, { concurrency: 3 });
    await batch.handle.retry();
    await batch.handle.result();
    return batch;
  },
  'batch-steered': async (environment) => {
    const batch = new TestBatch(environment).addItems(2, endless).addItems(3);
    await batch.startUntilSent(2, { concurrency: 2 });
    await batch.handle.pause();
    batch.endTurns();
    await batch.waitForProgress(({ ended }) => ended === 2);
    await batch.handle.setConcurrency(3);
    await batch.handle.resume();
    await batch.handle.result();
    return batch;
  },
  'batch-cancelled': async (environment) => {
    const batch = new TestBatch(environment).addItems(3, endless);
    await batch.startUntilSent(2, { concurrency: 2 });
    await batch.handle.cancel();
    await batch.handle.result();
    batch.endTurns();
    return batch;
  },
  'batch-cancelled-with-its-follow-ups': async (environment) => {
    const batch = new TestBatch(environment).addItems(3, endless);
    await batch.startUntilSent(2, { concurrency: 2 });
    await batch.handle.cancel({ cancelRunning: true });
    await batch.handle.result();
    return batch;
  },
  'batch-with-chunks': (environment) =>
    run(new TestBatch(environment).addItems(5, {}, { prompt: 'x'.repeat(256 * 1_024) }), { concurrency: 5 }),
  'batch-of-a-schedule': async (environment) => {
    const batch = new TestBatch(environment, 'scheduled').addItems(2);
    const { schedules } = environment.followUps;
    await schedules.create('scheduled', batch.requests, { spec: {}, state: { paused: true } });
    const schedule = environment.client.schedule.getHandle('scheduled');
    await schedule.trigger();
    const action = await eventually('the schedule has started its batch', async () => {
      const { info } = await schedule.describe();
      return info.recentActions[0]?.action.workflow.workflowId;
    });
    const scheduled = new TestBatch(environment, action.replace('follow-up-batch:', ''));
    await scheduled.handle.result();
    return scheduled;
  },
};

/** The Temporal server for this path suggests continue-as-new after a few events. */
export const continuingBatchPaths: BatchPaths = {
  'batch-continued-as-new': async (environment) => {
    const batch = new TestBatch(environment).addItems(2, endless).addItems(3);
    await batch.startUntilSent(2, { concurrency: 2 });
    const { runId } = await batch.workflow.describe();
    await batch.handle.pause();
    batch.endTurns();
    await eventually(
      'the batch continues as new',
      async () => (await batch.workflow.describe()).runId !== runId,
    );
    await batch.handle.resume();
    await batch.finish();
    return batch;
  },
};
