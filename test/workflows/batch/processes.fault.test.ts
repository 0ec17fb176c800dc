import { expect, it } from '@jest/globals';
import { BatchOfTest } from '../../harness/batch-of-test';
import { PATIENT, ProcessEnvironment } from '../../harness/process-environment';

const ITEMS = 30;

// Proves B2.
it('a worker of a batch that is killed while it starts items loses none: another one goes on, and none is sent twice', () =>
  ProcessEnvironment.with({}, async (environment) => {
    const batch = new BatchOfTest(environment);
    batch.addMany(ITEMS, {}, PATIENT);
    const worker = await environment.startWorker();
    await batch.startUntilSent(1, { concurrency: ITEMS });
    worker.signal('SIGKILL');
    await worker.exited;
    await environment.startWorker();
    expect(await batch.handle.result()).toMatchObject({ state: 'done', summary: { settled: ITEMS } });
    const sent = new Map((await batch.handle.settled()).map(({ jobId, delivery }) => [jobId, delivery]));
    expect(sent.size).toBe(ITEMS);
    // A message that the worker had under way may have arrived.
    const ofSend = { accepted: [1], unknown: [0, 1] } as Readonly<Record<string, readonly number[]>>;
    for (const { projectId, jobId } of batch.requests)
      expect(ofSend[sent.get(jobId) ?? '']).toContain(batch.posts({ projectId, jobId }).length);
  }));
