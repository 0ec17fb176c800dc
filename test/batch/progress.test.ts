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
    activityCount: 0,
    isPaused: false,
    stopReason: null,
    startLimit: 0,
    activityStartedAt: null,
  },
};

const INTERRUPTED_REASON =
  'The batch was reset, an operator completed its activity, or its items were deleted. 3 of 50 items ended.';
const EXCEEDED = { stopReason: 'max-failures', ended: 9, byStatus: { completed: 8 } } as const;
const EXCEEDED_REASON = '1 item failed, which is more than the maximum. 9 of 50 items';
const BLOCKED_ITEM = { workflowId: 'w', reason: 'no key' };
const ALL_ENDED = { ended: 50, byFailure: { FollowUpRejected: 2 } };

it.each<[string, Partial<BatchMemo>, Parameters<typeof toBatchProgress>[1], string, string]>([
  ['paused', { isPaused: true }, 'running', '', '`batch resume`'],
  ['ending', { stopReason: 'cancel-running' }, 'running', '', ''],
  ['ending', { stopReason: 'interrupted' }, 'running', INTERRUPTED_REASON, ''],
  ['terminated', {}, 'terminated', '', '`batch run` with the same file'],
  // The batch received the update `cancelRunning`, and its workflow was not cancelled.
  ['cancelled', { stopReason: 'cancel-running' }, 'failed', '', '`batch run` with the same file'],
  [
    'incomplete',
    { stopReason: 'interrupted' },
    'completed',
    INTERRUPTED_REASON,
    '`batch run` with the same file',
  ],
  [
    'max-failures-exceeded',
    EXCEEDED,
    'completed',
    EXCEEDED_REASON,
    '`batch retry` to send the items that were not sent',
  ],
  ['done', ALL_ENDED, 'completed', '', '`batch retry` to send the items that were not sent'],
  ['running', { blockedItem: BLOCKED_ITEM }, 'running', 'Waits for w: no key', ''],
  [
    'paused',
    { blockedItem: BLOCKED_ITEM, isPaused: true },
    'running',
    'Waits for w: no key',
    '`batch resume`',
  ],
  ['cancelled', { blockedItem: BLOCKED_ITEM }, 'cancelled', '', '`batch run` with the same file'],
])(
  'a batch is %s with the memo %j and the workflow status %s, and reports the reason and the next step',
  (expectedState, memo, workflowStatus, reason, nextStep) => {
    const summary = toBatchProgress({ ...MEMO, ended: 3, ...memo }, workflowStatus);
    const { state, message } = summary;
    const rows = new Map(batchRows({ state, message, summary }));
    expect([state, rows.has('why'), rows.has('what to do')]).toEqual([
      expectedState,
      reason !== '',
      nextStep !== '',
    ]);
    expect(rows.get('why') ?? '').toContain(reason);
    expect(rows.get('what to do') ?? '').toContain(nextStep);
  },
);

it.each([
  [{ 'seen-active': 7 }, undefined],
  [{ 'seen-active': 7, unchanged: 2 }, 'agent-follow-up list --outcome unchanged --batch'],
])(
  'the summary of a batch with the evidences %j shows how to list the unchanged results: %s',
  (byEvidence, command) => {
    const summary = toBatchProgress({ ...MEMO, ended: 9, byEvidence }, 'running');
    const rows = new Map(batchRows({ state: 'running', message: null, summary }));
    expect(rows.get('evidence')).toContain('seen-active × 7');
    expect(rows.get('evidence')?.includes('unchanged × 2')).toBe(command !== undefined);
    expect(rows.get('unchanged')?.includes(String(command))).toBe(command && true);
  },
);
