import { expect, it, jest } from '@jest/globals';
import { BATCH_TASK_TIMEOUT_MS } from '../../../src/core/batch/workflows';
import { BatchOfTest } from '../../harness/batch-of-test';
import { ProcessEnvironment } from '../../harness/process-environment';

/** Twice a worker dies, maybe in a task of the batch or of a page; a follow-up that is hit loses 19 s. */
jest.setTimeout(180_000 + 2 * BATCH_TASK_TIMEOUT_MS);

const ITEMS = 300;
const PROJECTS = 6;

const TIMES = {
  deadline: '5m',
  polling: { initial: '2s', growth: 0.2, maximum: '5s', jitter: 0.2 },
  reconcile: '4s',
  settle: '2s',
  confirm: '4s',
} as const;

it('a batch whose two workers are killed sends each item once, or says that nobody can tell', () =>
  ProcessEnvironment.with({ sandbox: { messagesPerHour: null } }, async (environment) => {
    const batch = new BatchOfTest(environment);
    for (let item = 0; item < ITEMS; item += 1)
      batch.add({ projectId: `project-${item % PROJECTS}`, turn: { durationMs: 4_000 } }, TIMES);
    const workers = [await environment.startWorker(), await environment.startWorker()];
    await batch.start({ concurrency: 100 });
    const { journal } = environment.sandbox;
    const sent = { operation: 'message', processed: true } as const;
    await journal.waitFor(sent, { atLeast: ITEMS / 3, timeoutMs: 60_000 });
    workers[0]?.signal('SIGKILL');
    await environment.startWorker();
    const timeoutMs = 60_000 + BATCH_TASK_TIMEOUT_MS;
    await journal.waitFor(sent, { atLeast: (2 * ITEMS) / 3, timeoutMs });
    workers[1]?.signal('SIGKILL');

    expect(await batch.handle.result()).toMatchObject({ state: 'done', summary: { settled: ITEMS } });
    const ends = await batch.handle.settled();
    expect(new Set(ends.map(({ jobId, projectId }) => `${projectId}/${jobId}`)).size).toBe(ITEMS);
    const untrue = ends.filter(({ projectId, jobId, delivery }) => {
      const processed = journal.entries({ projectId, jobId, ...sent }).length;
      return delivery === 'accepted' ? processed !== 1 : delivery !== 'unknown' || processed > 1;
    });
    expect(untrue).toEqual([]);
    expect(ends.filter(({ delivery }) => delivery === 'accepted').length).toBeGreaterThan(ITEMS / 2);
  }));
