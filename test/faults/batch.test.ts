import { describe, expect, it } from '@jest/globals';
import { FollowUpClient } from '../../src/client';
import { BATCH_TASK_TIMEOUT_MS } from '../../src/core/batch-workflows';
import type { FollowUpRequest } from '../../src/core/request';
import { ProcessEnvironment } from '../harness/process-environment';

const ITEMS = 300;
const PROJECTS = 6;

/** Twice a worker dies, maybe in a task of the batch or of a page; a follow-up that is hit loses 19 s. */
const LIMIT_MS = 180_000 + 2 * BATCH_TASK_TIMEOUT_MS;

const TIMES: Partial<FollowUpRequest> = {
  deadline: '5m',
  polling: { initial: '2s', growth: 0.2, maximum: '5s', jitter: 0.2 },
  reconcile: '4s',
  settle: '2s',
  confirm: '4s',
};

describe('a batch of three hundred items over six projects', () => {
  it(
    'whose two workers are killed one after the other sends each item once, or says that nobody can tell',
    async () => {
      await ProcessEnvironment.with({ sandbox: { messagesPerHour: null } }, async (environment) => {
        const { batches } = new FollowUpClient(environment.client, { taskQueue: environment.taskQueue });
        const requests = Array.from({ length: ITEMS }, (_, index): FollowUpRequest => {
          const projectId = `project-${index % PROJECTS}`;
          const { jobId } = environment.sandbox.addJob({ projectId, turn: { durationMs: 4_000 } });
          return { projectId, jobId, prompt: 'Rebase on main.', ...TIMES };
        });
        const workers = [await environment.startWorker(), await environment.startWorker()];
        await batches.start(await batches.check(requests, { batchId: 'killed' }), { concurrency: 100 });
        const sent = { operation: 'message', processed: true } as const;
        await environment.sandbox.journal.waitFor(sent, { atLeast: ITEMS / 3, timeoutMs: 60_000 });
        workers[0]?.signal('SIGKILL');
        await environment.startWorker();
        await environment.sandbox.journal.waitFor(sent, {
          atLeast: (2 * ITEMS) / 3,
          timeoutMs: 60_000 + BATCH_TASK_TIMEOUT_MS,
        });
        workers[1]?.signal('SIGKILL');

        const { state, summary } = await batches.getHandle('killed').result();
        expect({ state, settled: summary?.settled }).toEqual({ state: 'done', settled: ITEMS });
        const ends = await batches.getHandle('killed').settled();
        expect(new Set(ends.map(({ jobId, projectId }) => `${projectId}/${jobId}`)).size).toBe(ITEMS);
        const untrue = ends.filter(({ projectId, jobId, delivery }) => {
          const processed = environment.sandbox.journal.entries({ projectId, jobId, ...sent }).length;
          return delivery === 'accepted' ? processed !== 1 : delivery !== 'unknown' || processed > 1;
        });
        expect(untrue).toEqual([]);
        expect(ends.filter(({ delivery }) => delivery === 'accepted').length).toBeGreaterThan(ITEMS / 2);
      });
    },
    LIMIT_MS,
  );
});
