import { describe, expect, it } from '@jest/globals';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { BatchEnds } from '../../../src/client/batch/batch-ends';
import type { ItemEnd } from '../../../src/core/batch';
import { BATCH_WORKFLOW, MEMO_PAGES } from '../../../src/core/batch-workflows';

/** A page as the server has it: ends that a query tells, or a result. */
interface Page {
  status: 'RUNNING' | 'COMPLETED' | 'TERMINATED';
  readonly ends: ItemEnd[];
  /** So many questions to it fail. */
  failures?: number;
}

function end(name: string, settledMs: number): ItemEnd {
  return {
    workflowId: name,
    projectId: 'p',
    jobId: 'j',
    requestId: name,
    outcome: 'completed',
    delivery: 'accepted',
    evidence: 'confirmed',
    prLink: null,
    message: null,
    settledAt: new Date(settledMs).toISOString(),
  };
}

const RUN = '0123abcd';

/** A server that knows these pages of a batch, all of which have begun, from number 1 on; null for one that is gone. */
function asking(pages: (Page | null)[]) {
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
    status: { name: 'RUNNING' },
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
  const client = {
    withDeadline: (_at: number, call: () => Promise<unknown>) => call(),
    workflow: { getHandle },
  };
  return new BatchEnds(client as unknown as Client, 'follow-up-batch:nightly');
}

function progress(openPages: number[], done: number[] = []) {
  const donePages = done.map((page) => [page, page] as const);
  return { batchId: 'nightly', run: RUN, openPages, donePages };
}

const names = (ends: readonly ItemEnd[]): string[] => ends.map(({ workflowId }) => workflowId);

describe('the ends of a batch', () => {
  it('are told once each, those of one question sorted by their times', async () => {
    const one: Page = { status: 'RUNNING', ends: [end('a', 1), end('d', 4)] };
    const two: Page = { status: 'RUNNING', ends: [end('b', 2), end('c', 3)] };
    const ends = asking([one, two]);
    expect(names(await ends.since(progress([1, 2])))).toEqual(['a', 'b', 'c', 'd']);
    one.ends.push(end('e', 11));
    expect(names(await ends.since(progress([1, 2])))).toEqual(['e']);
    expect(names(await ends.since(progress([1, 2])))).toEqual([]);
  });

  it('are told as they come: a later question may tell of an earlier end, and what is left is sorted', async () => {
    const one: Page = { status: 'RUNNING', ends: [end('late', 12)] };
    const two: Page = { status: 'RUNNING', ends: [] };
    const ends = asking([one, two]);
    expect(names(await ends.since(progress([1, 2])))).toEqual(['late']);
    two.ends.push(end('early', 11));
    expect(names(await ends.since(progress([1, 2])))).toEqual(['early']);
    one.ends.push(end('last', 22));
    two.ends.push(end('later', 21));
    one.status = 'COMPLETED';
    two.status = 'COMPLETED';
    expect(names(await ends.rest())).toEqual(['later', 'last']);
  });

  it('of a page that is done, and stays open, are asked for once more', async () => {
    const page: Page = { status: 'RUNNING', ends: [end('a', 1)] };
    const ends = asking([page]);
    expect(names(await ends.since(progress([1])))).toEqual(['a']);
    page.ends.push(end('b', 2));
    expect(names(await ends.since(progress([], [1])))).toEqual(['b']);
    page.status = 'COMPLETED';
    expect(await ends.rest()).toEqual([]);
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
    expect(names(await ends.rest())).toEqual(['a', 'b']);
    expect([...ends.unreadable]).toEqual([]);
  });

  it('of a page that runs are asked for five times, as its worker may be busy', async () => {
    const busy: Page = { status: 'RUNNING', ends: [end('a', 1)], failures: 4 };
    expect(names(await asking([busy]).rest())).toEqual(['a']);
    const silent: Page = { status: 'RUNNING', ends: [end('a', 1)], failures: 5 };
    await expect(asking([silent]).rest()).rejects.toThrow('away');
  });

  it('of a page that is gone, or that nobody answers for, are unreadable and not nothing', async () => {
    const silent: Page = { status: 'TERMINATED', ends: [end('b', 2)], failures: 1 };
    const ends = asking([{ status: 'COMPLETED', ends: [end('a', 1)] }, null, silent]);
    expect(names(await ends.rest())).toEqual(['a']);
    expect([...ends.unreadable]).toEqual([2, 3]);
  });
});
