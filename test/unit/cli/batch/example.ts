import type { BatchProgress, ItemEnd } from '../../../../src/client';

/** A batch in the middle, half a minute after its start. */
export function progress(change: Partial<BatchProgress> = {}): BatchProgress {
  return {
    batchId: 'nightly',
    state: 'running',
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
    run: '0123abcd',
    pages: { total: 1, handedOver: 1, done: 0 },
    openPages: [1],
    donePages: [],
    ...change,
  };
}

export const NOW = Date.parse('2026-07-31T08:00:30.000Z');

export function end(number: number, change: Partial<ItemEnd> = {}): ItemEnd {
  return {
    workflowId: `follow-up:docs:job-${number}:order-${number}`,
    projectId: 'docs',
    jobId: `job-${number}`,
    requestId: `order-${number}`,
    outcome: 'completed',
    delivery: 'accepted',
    evidence: 'seen-active',
    prLink: `https://example.test/pull/${number}`,
    message: null,
    settledAt: new Date(NOW - 60_000 + number * 1_000).toISOString(),
    ...change,
  };
}
