import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { BatchOfTest, LARGE } from '../../harness/batch-of-test';
import { eventually } from '../../harness/eventually';
import { LOOKS_EVERY_SECOND, PATIENT, ProcessEnvironment } from '../../harness/process-environment';

/** With workers that look every second: what is an hour otherwise, seven pings of three looks, is 21 s. */
const LONGER_THAN_THE_HOUR_MS = 22_000;

/** A batch of three pages with an item each: `before` a worker is there, and `after`. In the end each item is sent once. */
function expectSentOnce(
  before: (batch: BatchOfTest) => Promise<unknown>,
  after: (batch: BatchOfTest) => Promise<unknown> = () => Promise.resolve(),
): Promise<void> {
  return ProcessEnvironment.with({ env: LOOKS_EVERY_SECOND }, async (environment) => {
    const batch = new BatchOfTest(environment);
    batch.addMany(3, {}, { ...PATIENT, prompt: LARGE });
    await before(batch);
    await environment.startWorker();
    await after(batch);
    expect(await batch.handle.result()).toMatchObject({ state: 'done', summary: { settled: 3 } });
    expect(batch.messages()).toEqual([1, 1, 1]);
  });
}

describe('a batch without a worker', () => {
  it.concurrent.each(['from a file', 'with its items'])(
    '%s, for longer than a hand-over may take, sends its items when one is there',
    (kind) =>
      expectSentOnce(async (batch) => {
        // The batch has begun to count: it has seen one page, and no more.
        await (kind === 'from a file' ? batch.start() : batch.startWithItems());
        await sleep(LONGER_THAN_THE_HOUR_MS);
      }),
  );

  it.concurrent('whose starter died is given up when a worker is there and no page comes', () =>
    expectSentOnce(
      async (batch) => {
        const died = new Error('the starter died');
        const onPage = () => {
          throw died;
        };
        await expect(batch.start({ onPage })).rejects.toBe(died);
        // What was under way is handed over all the same: one of them is ended before it has reported.
        await eventually('the last page is there', async () => {
          await (await batch.pageHandle(3)).terminate();
          return true;
        });
      },
      async (batch) => {
        const message = expect.stringContaining('Not all pages were handed over');
        expect(await batch.handle.result()).toMatchObject({ state: 'incomplete', message });
        expect(batch.posts()).toHaveLength(2);
        await batch.start();
      },
    ),
  );

  it.concurrent('one of whose pages somebody terminated gets that page from the same file', () =>
    expectSentOnce(async (batch) => {
      await batch.start();
      await (await batch.pageHandle(2)).terminate();
      expect(await batch.start()).toMatchObject({ attached: 'running' });
    }),
  );

  it.concurrent('that came with its items and ended before its first page is tried again by its id', () => {
    const settings = { concurrency: 2, tolerate: { items: 1 } };
    return expectSentOnce(
      async (batch) => {
        await batch.startWithItems(settings);
        await batch.terminate();
        expect(await batch.handle.retry()).toMatchObject({ attached: false, items: 3, pages: 3 });
      },
      async (batch) => {
        await batch.handle.result();
        expect((await batch.handle.describe()).pages).toMatchObject(settings);
      },
    );
  });
});
