import { describe, expect, it } from '@jest/globals';
import { batchLine, itemLine } from '../../../src/cli/render/batch';
import { ITEM_END } from '../../harness/samples';
import type { BatchProgress, ItemEnd } from '../../../src/client';

/** A batch in the middle, half a minute after its start. */
function progress(change: Partial<BatchProgress> = {}): BatchProgress {
  return {
    batchId: 'nightly',
    state: 'running',
    message: null,
    items: 200,
    settled: 50,
    byStatus: { completed: 45, failed: 3 },
    byFailure: { JobNotFound: 2 },
    byEvidence: { 'seen-active': 48 },
    unknownDeliveries: 0,
    firstFailures: [],
    startedAt: '2026-07-31T08:00:00.000Z',
    open: 10,
    concurrency: 10,
    ...change,
  };
}

const NOW = Date.parse('2026-07-31T08:00:30.000Z');

function end(number: number, change: Partial<ItemEnd>): ItemEnd {
  const settledAt = new Date(NOW - 60_000 + number * 1_000).toISOString();
  return { ...ITEM_END, projectId: 'docs', jobId: `job-${number}`, settledAt, ...change };
}

describe('the progress line of a batch', () => {
  const counts = 'open 10 · completed 45 · failed 3 · JobNotFound 2 ·';
  it.each<[Partial<BatchProgress>, string]>([
    [{}, `25 % · ${counts} to come 140`],
    [{ state: 'paused' }, `paused; "batch resume" continues it · 25 % · ${counts} to come 140`],
    [{ unknownDeliveries: 4 }, `25 % · ${counts} unknown deliveries 4 · to come 140`],
  ])('has the meter, the counts, and what %j tells', (change, line) => {
    expect(batchLine(progress(change), '25 %')).toBe(line);
  });

  it('has a line for a failed item, with what went wrong', () => {
    expect(itemLine(end(2, { outcome: 'failed' }))).toBe(
      '2026-07-31T07:59:32Z  failed            accepted  docs/job-2',
    );
    expect(itemLine(end(3, { outcome: 'JobNotFound', delivery: null, message: 'no such job' }))).toBe(
      '2026-07-31T07:59:33Z  JobNotFound       -         docs/job-3  no such job',
    );
  });
});
