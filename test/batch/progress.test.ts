import { expect, it } from '@jest/globals';
import { EMPTY_BOARD } from '../../src/batch/board';
import type { BatchMemo } from '../../src/batch/memo';
import { batchRows, toBatchProgress } from '../../src/batch/progress';

const MEMO: BatchMemo = {
  ...EMPTY_BOARD,
  ...{ batchId: 'nightly', items: 50, digest: null, retryScope: null, startedAt: '2026-01-01T00:00:00.000Z' },
  ...{
    concurrency: 50,
    maxFailures: null,
    rounds: 0,
    isPaused: false,
    stopReason: null,
    startLimit: 0,
    roundStartedAt: null,
  },
};

const RESET =
  'The batch was reset, an operator completed its activity, or its items were deleted. 3 of 50 items ended.';
const BEYOND = { stopReason: 'max-failures', ended: 9, byStatus: { completed: 8 } } as const;
const BEYOND_WORDS = '1 item failed, which is more than the maximum. 9 of 50 items';
const WAITS = { workflowId: 'w', reason: 'no key' };
const ALL_ENDED = { ended: 50, byFailure: { FollowUpRejected: 2 } };

it.each<[string, Partial<BatchMemo>, Parameters<typeof toBatchProgress>[1], string, string]>([
  ['paused', { isPaused: true }, 'running', '', '`batch resume`'],
  ['ending', { stopReason: 'cancel-running' }, 'running', '', ''],
  ['ending', { stopReason: 'interrupted' }, 'running', RESET, ''],
  ['terminated', {}, 'terminated', '', '`batch run` with the same file'],
  // After the update alone, without a request to cancel the workflow.
  ['cancelled', { stopReason: 'cancel-running' }, 'failed', '', '`batch run` with the same file'],
  ['incomplete', { stopReason: 'interrupted' }, 'completed', RESET, '`batch run` with the same file'],
  [
    'max-failures-exceeded',
    BEYOND,
    'completed',
    BEYOND_WORDS,
    '`batch retry` to send the items that were not sent',
  ],
  ['done', ALL_ENDED, 'completed', '', '`batch retry` to send the items that were not sent'],
  ['running', { blockedItem: WAITS }, 'running', 'Waits for w: no key', ''],
  ['paused', { blockedItem: WAITS, isPaused: true }, 'running', 'Waits for w: no key', '`batch resume`'],
  ['cancelled', { blockedItem: WAITS }, 'cancelled', '', '`batch run` with the same file'],
])(
  'a batch is %s with %j while its workflow is %s, and reports the reason and the next step',
  (wanted, memo, run, why, next) => {
    const summary = toBatchProgress({ ...MEMO, ended: 3, ...memo }, run);
    const { state, message } = summary;
    const rows = new Map(batchRows({ state, message, summary }));
    expect([state, rows.has('why'), rows.has('what to do')]).toEqual([wanted, why !== '', next !== '']);
    expect(rows.get('why') ?? '').toContain(why);
    expect(rows.get('what to do') ?? '').toContain(next);
  },
);
