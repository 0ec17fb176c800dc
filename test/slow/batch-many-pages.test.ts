import { expect, it } from '@jest/globals';
import { MAX_PAGE_ITEMS } from '../../src/core/batch';
import { BatchOfTest } from '../harness/batch-of-test';
import { Environment } from '../harness/environment';
import { eventually } from '../harness/eventually';
import { startForgetfulServer } from '../harness/forgetful-server';

const PAGES = 2_000;

/** Two such jobs don't fit into one page, so that each has a page of its own. */
const ITEMS_OF_A_JOB = MAX_PAGE_ITEMS / 2 + 1;

/** The server ends a workflow beyond it: a quarter more than the batch should need, and half of six events a page. */
const LIMITS = {
  'limit.historyCount.suggestContinueAsNew': 500,
  'limit.historyCount.warn': 6_900,
  'limit.historyCount.error': 7_000,
};

it(
  'a batch of thousands of pages is handed over and cancelled within the limit of a history',
  async () => {
    const server = await startForgetfulServer(LIMITS);
    const environment = await Environment.open({ address: server.address });
    try {
      const batch = new BatchOfTest(environment);
      const blocker = batch.add({ turn: { durationMs: null } });
      for (let job = 1; job < PAGES; job += 1) {
        const key = { projectId: batch.projectId, jobId: `waits-${job}` };
        for (let item = 0; item < ITEMS_OF_A_JOB; item += 1) batch.again(key, { prompt: `${item}` });
      }
      // The first job fills its page too, and is the only one that has a place.
      for (let item = 1; item < ITEMS_OF_A_JOB; item += 1) batch.again(blocker, { prompt: `${item}` });
      const { workflowId, pages } = await batch.start({ concurrency: 1 });
      expect(pages).toBe(PAGES);
      // The worker takes up what has come in while it was busy.
      const handedOver = async (): Promise<boolean> => {
        const report = await batch.handle.progress({ timeoutMs: 10_000 });
        return report.from === 'worker' && report.progress.pages.handedOver === PAGES;
      };
      await eventually('all pages have reported', handedOver, { timeoutMs: 300_000, intervalMs: 2_000 });
      await batch.handle.cancel();
      expect(await batch.handle.result()).toMatchObject({ state: 'cancelled' });
      const { historyLength } = await environment.client.workflow.getHandle(workflowId).describe();
      expect(historyLength).toBeLessThan(LIMITS['limit.historyCount.error']);
    } finally {
      await environment.close();
      await server.stop();
    }
  },
  15 * 60_000,
);
