import { describe, expect, it } from '@jest/globals';
import { MAX_PAGE_ITEMS, MAX_PAGES } from '../../../../src/core/batch';
import { jsonBytes } from '../../../../src/core/json';
import { NO_COUNTS } from '../../../../src/workflows/batch/counts';
import { initialState, takeReport } from '../../../../src/workflows/batch/state';

/** The server's limit of one payload (Temporal's documentation, "Workflow Execution limits"). */
const MAX_PAYLOAD_BYTES = 2 * 1_024 * 1_024;

describe('the state of a batch', () => {
  it('fits into one payload with as many waiting pages as there can be, so that it can continue as new', () => {
    const run = '0'.repeat(8);
    const state = initialState({
      batchId: 'b'.repeat(100),
      run,
      startedAt: 0,
      items: 100_000,
      pages: MAX_PAGES,
      tolerate: { percent: 5 },
      concurrency: 1_000,
      earlier: [],
      again: null,
    });
    for (let page = 1; page <= MAX_PAGES; page += 1) {
      const report = {
        run,
        pageRun: `${page}`.padStart(8, '0'),
        page,
        after: page - 1,
        followedBy: true,
        wants: MAX_PAGE_ITEMS,
      };
      const rest = { places: 0, open: 0, counts: NO_COUNTS, failures: [], done: false };
      expect(takeReport(state, { ...report, ...rest }, 1)).toBe(true);
    }
    expect(Object.keys(state.waiting)).toHaveLength(MAX_PAGES);
    expect(jsonBytes(state)).toBeLessThan(MAX_PAYLOAD_BYTES);
  });
});
