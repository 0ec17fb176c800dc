import { describe, expect, it } from '@jest/globals';
import { MAX_PAGE_ITEMS, MAX_PAGES } from '../../../src/core/batch/batch';
import type { PageReport } from '../../../src/core/batch/workflows';
import { jsonBytes } from '../../../src/core/text';
import { NO_COUNTS } from '../../../src/workflows/batch/counts';
import {
  allHaveAnswered,
  initialState,
  mayStartItems,
  progressOf,
  takeReport,
} from '../../../src/workflows/batch/state';

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
        takeReport(state, report(page, { after: page - 1, counts }));
      expect(Object.keys(state.known)).toHaveLength(MAX_PAGES);
      expect(jsonBytes(state)).toBeLessThan(MAX_PAYLOAD_BYTES);
    },
  );

  it('knows what is open when all pages have answered that an earlier run had begun', () => {
    const runs = { a: [2, 3], b: [2, 2] } as const;
    const earlier = Object.entries(runs).map(([run, pages]) => ({ run, pages: [pages] }));
    const state = stateOf(5, { earlier });
    takeReport(state, report(1));
    takeReport(state, report(2, { open: 3, wants: 5 }));
    expect(allHaveAnswered(state)).toBe(false);
    takeReport(state, report(3, { wants: 0, done: true }));
    expect(allHaveAnswered(state)).toBe(true);
    expect(progressOf(state, null)).toMatchObject({ open: 3, openPages: [2], pages: { done: 1 } });
  });

  it('gives the first page of a chain nothing while something is open in a later one', () => {
    const state = stateOf(3, { earlier: [{ run: 'a', pages: [[1, 3]] }] });
    for (const [page, after, open] of [[1, null, 0] as const, [2, 1, 0] as const, [3, 2, 1] as const])
      takeReport(state, report(page, { after, open }));
    expect(mayStartItems(state, 1)).toBe(false);
    takeReport(state, report(3, { after: 2 }));
    expect(mayStartItems(state, 1)).toBe(true);
    expect(mayStartItems(state, 2)).toBe(false);
  });

  it.each([
    [1, 3, '1 item failed, more than the tolerance allows. 1 of 3 items ended.'],
    [2, 2, '2 items failed, more than the tolerance allows. 2 of 2 items ended.'],
    [1, 1, '1 item failed, more than the tolerance allows. 1 of 1 item ended.'],
  ])('with %d failures of %d items says so in words', (failed, items, words) => {
    const counts = { ...NO_COUNTS, settled: failed, byFailure: { DeliveryUnknown: failed } };
    const state = stateOf(1, { items });
    takeReport(state, report(1, { counts }));
    state.ending = 'tolerance';
    expect(progressOf(state, null).message).toContain(words);
  });
});
