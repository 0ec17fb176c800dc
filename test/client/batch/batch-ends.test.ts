import { describe, expect, it } from '@jest/globals';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { BatchEnds } from '../../../src/client/batch/batch-ends';
import type { ItemEnd } from '../../../src/core/batch/batch';
import { BATCH_WORKFLOW, MEMO_PAGES } from '../../../src/core/batch/workflows';
import { ITEM_END } from '../../harness/samples';
import { msNumberToTs } from '../../../src/temporal/sdk-internals';

/** A page as the server has it: ends that a query tells, or a result. */
interface Page {
  status: 'RUNNING' | 'COMPLETED' | 'TERMINATED';
  readonly ends: ItemEnd[];
  /** So many questions to it fail. */
  failures?: number;
}

function end(name: string, settledMs: number): ItemEnd {
  return { ...ITEM_END, workflowId: name, settledAt: new Date(settledMs).toISOString() };
}

const RUN = '0123abcd';

/** A server that knows these pages of a batch, all of which have begun, from number 1 on; null for one that is gone. */
function asking(pages: (Page | null)[], { isPolled = true, isOver = false } = {}) {
  const failing = (page: Page): void => {
    if (!page.failures) return;
    page.failures -= 1;
    throw new Error('the server is away');
  };
  const memo = { batchId: 'nightly', begun: [{ run: RUN, pages: [[1, pages.length]] }] };
  const batch = {
    type: BATCH_WORKFLOW,
    runId: RUN,
    raw: {},
    memo: { [MEMO_PAGES]: memo },
    status: { name: isOver ? 'COMPLETED' : 'RUNNING' },
    taskQueue: 'mine',
    startTime: new Date(0),
  };
  const getHandle = (workflowId: string) => {
    if (workflowId === 'follow-up-batch:nightly') return { describe: () => Promise.resolve(batch) };
    const page = pages[Number(/page-(\d+)$/.exec(workflowId)?.[1]) - 1] ?? null;
    if (page === null) {
      const absent = () => Promise.reject(new WorkflowNotFoundError('absent', workflowId, undefined));
      return { query: absent, describe: absent, result: absent };
    }
    return {
      query: (_name: string, since: number) =>
        Promise.resolve().then(() => {
          failing(page);
          return page.ends.slice(since);
        }),
      describe: () => Promise.resolve({ status: { name: page.status } }),
      result: () =>
        Promise.resolve().then(() => {
          failing(page);
          return { ends: page.ends, left: [], notStarted: 0 };
        }),
    };
  };
  const now = msNumberToTs(Date.now());
  const pollers = isPolled ? [{ identity: 'w', lastAccessTime: now }] : [];
  const client = {
    withDeadline: (_at: number, call: () => Promise<unknown>) => call(),
    workflow: { getHandle },
    options: { namespace: 'default' },
    workflowService: { describeTaskQueue: () => Promise.resolve({ pollers }) },
  };
  return new BatchEnds(client as unknown as Client, 'follow-up-batch:nightly');
}

function progress(openPages: number[], done: number[] = []) {
  const donePages = done.map((page) => [page, page] as const);
  return { batchId: 'nightly', run: RUN, openPages, donePages };
}

const names = (ends: readonly ItemEnd[]): string[] => ends.map(({ workflowId }) => workflowId);

describe('the ends of a batch', () => {
  it('are told once each, as they come: a later question may tell of an earlier end, and what is left is sorted', async () => {
    const one: Page = { status: 'RUNNING', ends: [end('late', 12)] };
    const two: Page = { status: 'RUNNING', ends: [] };
    const ends = asking([one, two]);
    expect(names(await ends.since(progress([1, 2])))).toEqual(['late']);
    two.ends.push(end('early', 11));
    expect(names(await ends.since(progress([1, 2])))).toEqual(['early']);
    expect(names(await ends.since(progress([1, 2])))).toEqual([]);
    one.ends.push(end('last', 22));
    two.ends.push(end('later', 21));
    one.status = 'COMPLETED';
    two.status = 'COMPLETED';
    expect(names((await ends.rest()).ends)).toEqual(['later', 'last']);
  });

  it('are not lost when a question fails', async () => {
    const one: Page = { status: 'RUNNING', ends: [end('a', 1)] };
    const two: Page = { status: 'RUNNING', ends: [end('b', 2)], failures: 1 };
    const three: Page = { status: 'RUNNING', ends: [end('c', 3)], failures: 1 };
    const ends = asking([one, two, three]);
    await expect(ends.since(progress([1, 2]))).rejects.toThrow('away');
    await expect(ends.since(progress([1, 2], [3]))).rejects.toThrow('away');
    expect(names(await ends.since(progress([1, 2], [3])))).toEqual(['a', 'b', 'c']);
  });

  it('of a page that closes a moment after its batch, or was terminated, are told too', async () => {
    const closing: Page = { status: 'RUNNING', ends: [end('a', 1)] };
    const terminated: Page = { status: 'TERMINATED', ends: [end('b', 2)] };
    const ends = asking([closing, terminated]);
    const { ends: read, problem } = await ends.rest();
    expect(names(read)).toEqual(['a', 'b']);
    expect(problem).toBeNull();
  });

  it('of a page that still runs are asked for three times once the batch has ended, as its worker may be busy', async () => {
    const busy: Page = { status: 'RUNNING', ends: [end('a', 1)], failures: 2 };
    expect(names((await asking([busy], { isOver: true }).rest()).ends)).toEqual(['a']);
    const silent: Page = { status: 'RUNNING', ends: [end('a', 1)], failures: 3 };
    expect((await asking([silent], { isOver: true }).rest()).problem).toMatchObject({
      code: 'NO_ANSWER',
      message: expect.stringContaining('the worker on the task queue "mine" is busy'),
    });
  });

  it('without a worker, are read from the pages that have ended, and no page is asked', async () => {
    const ended: Page = { status: 'COMPLETED', ends: [end('a', 1)] };
    const running: Page = { status: 'RUNNING', ends: [end('b', 2)] };
    const { ends, problem } = await asking([running, ended], { isPolled: false }).rest();
    expect(names(ends)).toEqual(['a']);
    expect(problem).toMatchObject({ code: 'NO_ANSWER', ends });
    expect(problem?.message).toMatch(/no worker polls the task queue "mine"; start one/);
  });

  it('of a page that is gone, or that nobody answers for, are unreadable and not nothing', async () => {
    const silent: Page = { status: 'TERMINATED', ends: [end('b', 2)], failures: 1 };
    const { ends, problem } = await asking([
      { status: 'COMPLETED', ends: [end('a', 1)] },
      null,
      silent,
    ]).rest();
    expect(names(ends)).toEqual(['a']);
    expect(problem).toMatchObject({ code: 'RESULTS_UNREADABLE', ends });
  });
});
