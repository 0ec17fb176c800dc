import { describe, expect, it } from '@jest/globals';
import { BatchOfTest } from '../../harness/batch-of-test';
import { PATIENT, ProcessEnvironment } from '../../harness/process-environment';
import type { WorkerProcess } from '../../harness/worker-process';

const ITEMS = 30;

/** A batch whose worker has begun to start its items. In the end each of them has its end, and none was sent twice. */
function expectNoneTwice(
  harm: (worker: WorkerProcess, batch: BatchOfTest, environment: ProcessEnvironment) => Promise<void>,
): Promise<void> {
  return ProcessEnvironment.with({}, async (environment) => {
    const batch = new BatchOfTest(environment);
    batch.addMany(ITEMS, {}, PATIENT);
    const worker = await environment.startWorker();
    await batch.startUntilSent(1, { concurrency: ITEMS });
    await harm(worker, batch, environment);
    expect(await batch.handle.result()).toMatchObject({ state: 'done', summary: { settled: ITEMS } });
    const sent = new Map((await batch.handle.settled()).map(({ jobId, delivery }) => [jobId, delivery]));
    expect(sent.size).toBe(ITEMS);
    // A message that the worker had under way may have arrived.
    const ofSend = { accepted: [1], unknown: [0, 1] } as Readonly<Record<string, readonly number[]>>;
    for (const { projectId, jobId } of batch.requests)
      expect(ofSend[sent.get(jobId) ?? '']).toContain(batch.posts({ projectId, jobId }).length);
  });
}

describe('a worker of a batch', () => {
  // Proves B2.
  it.concurrent('that is killed while it starts items loses none: another one goes on', () =>
    expectNoneTwice(async (worker, _, environment) => {
      worker.signal('SIGKILL');
      await worker.exited;
      await environment.startWorker();
    }),
  );

  // Proves B2.
  it.concurrent('that is frozen while it starts items, and wakes, starts none twice', () =>
    expectNoneTwice(async (worker, batch, environment) => {
      worker.signal('SIGSTOP');
      await environment.startWorker();
      await batch.progressWhen(({ settled, open }) => settled + open === ITEMS);
      worker.signal('SIGCONT');
    }),
  );
});
