import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { BATCH_WORKFLOW } from '../../src/core/batch-workflows';
import { BatchOfTest } from '../harness/batch-of-test';
import { PATIENT, ProcessEnvironment } from '../harness/process-environment';

const LOOK_EVERY_SECOND = `--import=${pathToFileURL(path.join(__dirname, 'soak/look-every-second.mjs')).href}`;

/** Workers that look every second: what is an hour otherwise, seven pings of three looks, is 21 s. */
const SHORT_HOUR = { env: { NODE_OPTIONS: LOOK_EVERY_SECOND } };
const LONGER_THAN_THE_HOUR_MS = 25_000;

const LARGE = 'x'.repeat(256 * 1_024);

async function startWithItems(batch: BatchOfTest, input: object = {}): Promise<void> {
  const { items } = await batch.batches.check(batch.requests, { batchId: batch.batchId });
  await batch.environment.client.workflow.start(BATCH_WORKFLOW, {
    workflowId: `follow-up-batch:${batch.batchId}`,
    taskQueue: batch.environment.taskQueue,
    args: [{ items, ...input }],
  });
}

describe('a batch without a worker', () => {
  it.concurrent.each(['from a file', 'with its items'])(
    '%s, for longer than a hand-over may take, sends its items when one is there',
    async (kind) => {
      await ProcessEnvironment.with(SHORT_HOUR, async (environment) => {
        const batch = new BatchOfTest(environment);
        for (let item = 0; item < 3; item += 1) batch.add({}, { ...PATIENT, prompt: LARGE });
        // The batch has begun to count: it has seen one page, and no more.
        await (kind === 'from a file' ? batch.start() : startWithItems(batch));
        await sleep(LONGER_THAN_THE_HOUR_MS);
        await environment.startWorker();
        expect(await batch.handle.result()).toMatchObject({ state: 'done', summary: { settled: 3 } });
        expect(batch.messages()).toEqual([1, 1, 1]);
      });
    },
    120_000,
  );

  it.concurrent(
    'whose starter died is given up after the time in which a worker was there and no page came',
    async () => {
      await ProcessEnvironment.with(SHORT_HOUR, async (environment) => {
        const batch = new BatchOfTest(environment);
        for (let item = 0; item < 3; item += 1) batch.add({}, { ...PATIENT, prompt: LARGE });
        const died = new Error('the starter died');
        const onPage = () => {
          throw died;
        };
        const controller = new AbortController();
        const dieing = batch.start({ signal: controller.signal, onPage });
        await expect(dieing).rejects.toBe(died);
        // What was under way is handed over all the same: one of them is ended before it has reported.
        await sleep(1_000);
        await (await batch.pageHandle(3)).terminate();
        await environment.startWorker();
        const { state, message } = await batch.handle.result();
        expect({ state, message }).toMatchObject({
          state: 'incomplete',
          message: expect.stringContaining('Not all pages were handed over'),
        });
        expect(batch.posts()).toHaveLength(2);
        await batch.start();
        expect(await batch.handle.result()).toMatchObject({ state: 'done', summary: { settled: 3 } });
        expect(batch.messages()).toEqual([1, 1, 1]);
      });
    },
    120_000,
  );

  it.concurrent(
    'one of whose pages somebody terminated gets that page from the same file',
    async () => {
      await ProcessEnvironment.with({}, async (environment) => {
        const batch = new BatchOfTest(environment);
        for (let item = 0; item < 3; item += 1) batch.add({}, { ...PATIENT, prompt: LARGE });
        await batch.start();
        await (await batch.pageHandle(2)).terminate();
        expect(await batch.start()).toMatchObject({ attached: 'running' });
        await environment.startWorker();
        expect(await batch.handle.result()).toMatchObject({ state: 'done', summary: { settled: 3 } });
        expect(batch.messages()).toEqual([1, 1, 1]);
      });
    },
    120_000,
  );

  it.concurrent(
    'that came with its items and ended before its first page is tried again by its id, with what it was started with',
    async () => {
      await ProcessEnvironment.with({}, async (environment) => {
        const batch = new BatchOfTest(environment);
        for (let item = 0; item < 3; item += 1) batch.add({}, { ...PATIENT, prompt: LARGE });
        await startWithItems(batch, { concurrency: 2, tolerate: { items: 1 } });
        await environment.client.workflow.getHandle(`follow-up-batch:${batch.batchId}`).terminate();
        expect(await batch.handle.retry()).toMatchObject({ attached: false, items: 3, pages: 3 });
        await environment.startWorker();
        expect(await batch.handle.result()).toMatchObject({ state: 'done', summary: { settled: 3 } });
        expect((await batch.handle.describe()).pages).toMatchObject({
          concurrency: 2,
          tolerate: { items: 1 },
        });
        expect(batch.messages()).toEqual([1, 1, 1]);
      });
    },
    120_000,
  );
});
