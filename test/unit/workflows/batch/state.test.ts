import { describe, expect, it } from '@jest/globals';
import { MAX_PAGE_ITEMS, MAX_PAGES } from '../../../../src/core/batch';
import type { PageReport } from '../../../../src/core/batch-workflows';
import { jsonBytes } from '../../../../src/core/json';
import { NO_COUNTS } from '../../../../src/workflows/batch/counts';
import {
  allHaveAnswered,
  initialState,
  mayStartItems,
  progressOf,
  takeReport,
} from '../../../../src/workflows/batch/state';

/** The server's limit of one payload (Temporal's documentation, "Workflow Execution limits"). */
const MAX_PAYLOAD_BYTES = 2 * 1_024 * 1_024;

const run = '0'.repeat(8);

function stateOf(pages: number, more: Partial<Parameters<typeof initialState>[0]> = {}) {
  return initialState({
    batchId: 'b'.repeat(100),
    run,
    startedAt: 0,
    items: 100_000,
    pages,
    tolerate: { percent: 5 },
    concurrency: 1_000,
    hasItems: false,
    earlier: [],
    again: null,
    ...more,
  });
}

function report(page: number, more: Partial<PageReport> = {}): PageReport {
  return {
    run,
    pageRun: `${page}`.padStart(8, '0'),
    page,
    after: null,
    followedBy: false,
    wants: MAX_PAGE_ITEMS,
    places: 0,
    open: 0,
    counts: NO_COUNTS,
    failures: [],
    done: false,
    ...more,
  };
}

describe('the state of a batch', () => {
  it.each([
    ['that wait', []],
    ['that an earlier run had begun', [{ run: 'earlier', pages: [[1, MAX_PAGES]] as const }]],
  ])(
    'fits into one payload with as many pages as there can be %s, so that it can continue as new',
    (_, earlier) => {
      const state = stateOf(MAX_PAGES, { earlier });
      const byStatus = { completed: 10, archived: 10, failed: 10 };
      const counts = { ...NO_COUNTS, settled: 30, byStatus, byEvidence: { 'seen-active': 30 } };
      for (let page = 1; page <= MAX_PAGES; page += 1)
        takeReport(state, report(page, { after: page - 1, followedBy: true, counts }));
      expect(Object.keys({ ...state.waiting, ...state.begun })).toHaveLength(MAX_PAGES);
      expect(jsonBytes(state)).toBeLessThan(MAX_PAYLOAD_BYTES);
    },
  );

  it('knows what is open when all pages have answered that an earlier run had begun', () => {
    const state = stateOf(5, {
      earlier: [
        { run: 'a', pages: [[2, 3]] },
        { run: 'b', pages: [[2, 2]] },
      ],
    });
    takeReport(state, report(1));
    takeReport(state, report(2, { open: 3, wants: 5 }));
    expect(allHaveAnswered(state)).toBe(false);
    takeReport(state, report(3, { wants: 0, done: true }));
    expect(allHaveAnswered(state)).toBe(true);
    expect(progressOf(state, null)).toMatchObject({ open: 3, openPages: [2], pages: { done: 1 } });
  });

  it('gives the first page of a chain nothing while something is open in a later one', () => {
    const state = stateOf(3, { earlier: [{ run: 'a', pages: [[1, 3]] }] });
    const chain = [1, 2, 3].map((page) => ({ after: page === 1 ? null : page - 1, followedBy: page < 3 }));
    for (const [index, link] of chain.entries())
      takeReport(state, report(index + 1, { ...link, open: index === 2 ? 1 : 0 }));
    expect(mayStartItems(state, 1, { after: null })).toBe(false);
    takeReport(state, report(3, { after: 2 }));
    expect(mayStartItems(state, 1, { after: null })).toBe(true);
    expect(mayStartItems(state, 2, { after: 1 })).toBe(false);
  });
});
