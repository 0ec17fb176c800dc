import { expect, it } from '@jest/globals';
import { MAX_PAGE_ITEMS } from '../../../src/core/batch/batch';
import { eventually } from '../../harness/eventually';
import { sharedEnvironment } from '../../harness/shared-environment';

/** A tenth of what a batch may have, with a tenth of the server's limits. */
const PAGES = 200;

/** Two such jobs don't fit into one page, so that each has a page of its own. */
const ITEMS_OF_A_JOB = MAX_PAGE_ITEMS / 2 + 1;

/** The server ends a workflow beyond it. With 2,000 pages a batch needed 3,300; closing all by itself, 7,000 (measured). */
const LIMITS = {
  'limit.historyCount.suggestContinueAsNew': 100,
  'limit.historyCount.warn': 640,
  'limit.historyCount.error': 650,
};

const { newBatch } = sharedEnvironment({ dynamicConfig: LIMITS });

it('a batch of hundreds of pages is handed over and cancelled within the limit of a history', async () => {
  const batch = await newBatch();
  const blocker = batch.add({ turn: { durationMs: null } });
  for (let job = 1; job < PAGES; job += 1) {
    const key = { projectId: batch.projectId, jobId: `waits-${job}` };
    for (let item = 0; item < ITEMS_OF_A_JOB; item += 1) batch.again(key, { prompt: `${item}` });
  }
  // The first job fills its page too, and is the only one that has a place.
  for (let item = 1; item < ITEMS_OF_A_JOB; item += 1) batch.again(blocker, { prompt: `${item}` });
  expect(await batch.start({ concurrency: 1 })).toMatchObject({ pages: PAGES });
  // The worker takes up what has come in while it was busy.
  const handedOver = async (): Promise<boolean> => {
    const report = await batch.handle.progress();
    return report.from === 'worker' && report.progress.pages.handedOver === PAGES;
  };
  await eventually('all pages have reported', handedOver, { intervalMs: 500 });
  expect(await batch.cancel()).toMatchObject({ state: 'cancelled' });
  const { historyLength } = await batch.workflow.describe();
  expect(historyLength).toBeLessThan(LIMITS['limit.historyCount.error']);
});
