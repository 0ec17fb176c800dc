import { describe, expect, it } from '@jest/globals';
import { ConflictError } from '../../../src/entries/client';
import { readBatchMemo } from '../../../src/batch/memo';
import { ENDLESS_TURN } from '../../harness/follow-up-under-test';
import { sharedEnvironment } from '../../harness/shared-environment';

const { newBatch } = sharedEnvironment();

describe('a batch', () => {
  // Proves B9.
  it.concurrent(
    'sends each message once, returns the outcome of every item, and keeps its settings in a retry',
    async () => {
      const batch = (await newBatch(6)).addItems(1, { turn: { outcome: 'failed', reads: 2 } });
      batch.addRequest({ projectId: batch.projectId, jobId: 'missing' });
      const settings = { concurrency: 3, maxFailures: { items: 5 } };
      expect(await batch.start(settings)).toMatchObject({ attached: false, items: 8 });
      const done = {
        state: 'done',
        summary: {
          batchId: batch.batchId,
          items: 8,
          ended: 8,
          byStatus: { completed: 6, failed: 1 },
          byFailure: { JobNotFound: 1 },
          byEvidence: { 'seen-active': 7 },
          unknownDeliveries: 0,
          firstFailures: [{ outcome: expect.any(String) }, { outcome: expect.any(String) }],
        },
      };
      expect(await batch.handle.result()).toMatchObject(done);
      const results = await batch.handle.listResults();
      expect(results).toHaveLength(8);
      expect(results.find(({ jobId }) => jobId === 'missing')).toMatchObject({
        outcome: 'JobNotFound',
        delivery: 'not-sent',
        message: expect.stringContaining('Nothing was sent'),
      });
      expect(await batch.handle.retry()).toMatchObject({ resumedAfter: 'completed' });
      expect(await batch.handle.result()).toMatchObject(done);
      expect(readBatchMemo((await batch.workflow.describe()).memo)).toMatchObject(settings);
      expect(batch.messageCounts()).toEqual([...Array<number>(7).fill(1), 0]);
    },
  );

  // Proves B7.
  it.concurrent(
    'rejects a start with the same batch ID and other items, even if another client started the batch',
    async () => {
      const batch = await newBatch(1, ENDLESS_TURN);
      await batch.startWithInlineItems();
      await batch.waitUntilSent(1);
      expect(await batch.start()).toMatchObject({ attached: 'running' });
      const { batchId, requests } = batch;
      const slower = requests.map((request) => ({ ...request, prLinkTimeout: '77s' }) as const);
      const rejected = batch.batches.start(slower, { batchId });
      await expect(rejected).rejects.toThrow(
        'exists with other items, other request options or another order',
      );
      await expect(rejected).rejects.toBeInstanceOf(ConflictError);
      batch.addItem();
      await expect(batch.start()).rejects.toBeInstanceOf(ConflictError);
      await batch.finish();
      await expect(batch.start()).rejects.toBeInstanceOf(ConflictError);
      expect(batch.messageCounts()).toEqual([1, 0]);
    },
  );
});
