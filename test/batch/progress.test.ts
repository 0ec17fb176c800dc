import { expect, it } from '@jest/globals';
import { EMPTY_BOARD } from '../../src/batch/board';
import type { BatchMemo } from '../../src/batch/memo';
import { batchDetails, batchRows, toBatchProgress } from '../../src/batch/progress';

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
const EXCEEDED_REASON =
  '1 item failed, which is more than the maximum. 9 of 50 items ended. To continue, run the batch again with a higher ' +
  '`--max-failures`. To send the items that were not sent or were rejected, run `batch retry`.';
const BLOCKED_ITEM = { workflowId: 'w', reason: 'no key' };
const ALL_ENDED = { ended: 50, byFailure: { FollowUpRejected: 2 } };

it.each<[string, Partial<BatchMemo>, Parameters<typeof toBatchProgress>[1], string, string]>([
  ['paused', { isPaused: true }, 'running', '', '`batch resume`'],
  ['ending', { stopReason: 'cancel-running' }, 'running', '', ''],
  ['ending', { stopReason: 'interrupted' }, 'running', INTERRUPTED_REASON, ''],
  ['terminated', {}, 'terminated', '', '`batch run` with the same file'],
  ['terminated', {}, 'timed-out', '', '`batch run` with the same file'],
  ['cancelled', { stopReason: 'cancelled' }, 'failed', '', '`batch run` with the same file'],
  ['incomplete', {}, 'completed', INTERRUPTED_REASON, '`batch run` with the same file'],
  ['done', { ended: 50 }, 'completed', '', ''],
  ['running', { byFailure: { FollowUpRejected: 2 } }, 'running', '', ''],
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
  [
    'max-failures-exceeded',
    { ...ALL_ENDED, stopReason: 'max-failures', byStatus: { completed: 48 } },
    'completed',
    '2 items failed, which is more than the maximum. 50 of 50 items ended. To send the items that were not sent or were ' +
      'rejected, run `batch retry`.',
    '`batch retry` to send the items that were not sent',
  ],
  ['done', ALL_ENDED, 'completed', '', '`batch retry` to send the items that were not sent'],
  ['running', { blockedItem: BLOCKED_ITEM }, 'running', "The item w can't proceed: no key", ''],
  [
    'paused',
    { blockedItem: BLOCKED_ITEM, isPaused: true },
    'running',
    "The item w can't proceed: no key",
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

const COUNTED = {
  ...MEMO,
  ...{ ended: 5, open: 3, byStatus: { completed: 3, failed: 1 }, byFailure: { missing: 1 } },
  ...{ byEvidence: { 'seen-active': 4 }, unknownDeliveries: 1 },
};

it.each([
  [null, [['running', '3 (concurrency 50)']], []],
  ['2026-01-01T00:02:00.000Z', [], [['ended', '2026-01-01T00:02:00.000Z (after 2m)']]],
])('the rows of a batch that ended at %j have its counts and times', (endedAt, running, ended) => {
  const summary = toBatchProgress(COUNTED, 'running', endedAt);
  expect(batchRows({ state: 'running', message: null, summary })).toEqual([
    ['state', 'running'],
    ['items', '5 of 50 ended'],
    ...running,
    ['status', 'completed × 3, failed × 1'],
    ['failure', 'missing × 1'],
    ['evidence', 'seen-active × 4'],
    ['unknown', '1 deliveries'],
    ['started', '2026-01-01T00:00:00.000Z'],
    ...ended,
  ]);
});

it.each([
  ['incomplete', 'correct the input, and start the batch with another batch ID'],
  [
    'terminated',
    'to continue the batch, run `batch run` with the same file; running items continue unless they were cancelled too',
  ],
  ['done', undefined],
] as const)('a batch without a summary is %s, and its rows have this action: %s', (state, action) => {
  expect(batchRows({ state, message: null, summary: null })).toEqual([
    ['state', state],
    ...(action === undefined ? [] : [['what to do', action]]),
  ]);
});

it('the details for the Web UI have the rows of the batch, its time, and the first failures', () => {
  const firstFailures = [
    { workflowId: 'v', outcome: 'failed', message: null },
    { workflowId: 'w', outcome: 'missing', message: 'no `key`' },
  ] as const;
  const now = Date.parse('2026-01-01T00:01:30.500Z');
  const text = batchDetails(toBatchProgress({ ...MEMO, firstFailures }, 'running'), now);
  expect(text).toMatch(/^\*\*Batch `nightly`\*\*\n\n\| \| \|\n/);
  expect(text).toContain('| state: | running |');
  expect(text).toContain('| as of: | 2026-01-01T00:01:30Z; `batch status` shows the latest progress |');
  expect(text).toContain('| item workflows: | the workflows with `FollowUpBatch = "nightly"` |');
  expect(text).toMatch(/\n\n\*\*First failures\*\*\n\n- `v` failed\n- `w` missing: .*key.*$/);
  expect(batchDetails(toBatchProgress(MEMO, 'running'), now)).not.toContain('First failures');
});
