import type { RecordedOutcome } from '../contract/outcome';
import { pluralize, markdownCode as code, markdownTable } from '../contract/text';
import { formatDuration } from '../contract/duration';
import { COUNTS, countFailures } from './board';
import { type BatchMemo, pick } from './memo';

/** The result of `followUpBatch`: a summary without the items. */
export interface BatchSummary extends Pick<BatchMemo, (typeof SUMMARY_FIELDS)[number]> {
  /** When the batch ended, as ISO 8601 in UTC. */
  readonly endedAt: string;
}

const SUMMARY_FIELDS = ['batchId', 'items', ...COUNTS, 'startedAt'] as const;

/** How one item of a batch ended. */
export interface BatchItemResult extends RecordedOutcome {
  readonly workflowId: string;
  readonly projectId: string;
  readonly jobId: string;
  readonly requestId: string;
  /** When the item ended, as ISO 8601 in UTC. */
  readonly endedAt: string;
}

/** The state of a running or ended batch. `ending` means that a running batch starts no further items. */
type BatchState =
  | 'running'
  | 'paused'
  | 'ending'
  | 'done'
  | 'max-failures-exceeded'
  | 'incomplete'
  | 'cancelled'
  | 'terminated';

/** The response to the query `progress` of a batch, and to its updates. */
export interface BatchProgress
  extends Omit<BatchSummary, 'endedAt'>, Pick<BatchMemo, 'open' | 'concurrency'> {
  readonly state: BatchState;
  /**
   * Why a running batch will not end as `done`, or why an ended batch did not, and the required action. For a running batch that
   * can't proceed, the message names the blocked item and the reason. Otherwise, and for a cancelled batch, the value is null.
   */
  readonly message: string | null;
  /** When the batch ended, as ISO 8601 in UTC. The value is null while the batch runs. */
  readonly endedAt: string | null;
}

/** The progress of a batch in the Temporal server's record, or how the batch ended. */
export interface BatchView extends Pick<BatchProgress, 'state'> {
  /** The problem, or the reason why the batch does not continue. The value is null for a batch without a problem. */
  readonly message: string | null;
  /**
   * The progress of a running or ended batch. The field is named `summary`, also in JSON output, but has more fields than
   * `BatchSummary`. The value is null if no worker has started the batch yet, if the input was rejected, or if the batch was
   * terminated. A batch that timed out has a summary.
   */
  readonly summary: BatchProgress | null;
}

export function toSummaryFields(memo: BatchMemo) {
  return pick(memo, SUMMARY_FIELDS);
}

/**
 * Returns the progress of a batch.
 *
 * @param run the state of the workflow, as `toRunState` returns it
 * @param endedAt ISO 8601 in UTC; null while the workflow runs
 */
export function toBatchProgress(memo: BatchMemo, run: string, endedAt: string | null = null): BatchProgress {
  const { open, concurrency, isPaused, stopReason, blockedItem } = memo;
  const outcome = toBatchOutcome(memo);
  const running = stopReason !== null ? 'ending' : isPaused ? 'paused' : 'running';
  const isTerminated = run === 'terminated' || run === 'timed-out';
  const endedState = isTerminated ? 'terminated' : run === 'cancelled' ? run : outcome.state;
  const state = run === 'running' ? running : endedState;
  const waits =
    run === 'running' && blockedItem
      ? `The item ${blockedItem.workflowId} can't proceed: ${blockedItem.reason}`
      : null;
  const message = (state === outcome.state || stopReason !== null ? outcome.message : null) ?? waits;
  return { ...toSummaryFields(memo), state, message, open, concurrency, endedAt };
}

/**
 * Returns the outcome of a batch that is not terminated. If it does not end as `done` and was not cancelled, the message has the
 * reason and the action.
 */
export function toBatchOutcome(memo: BatchMemo) {
  const { items, ended, stopReason } = memo;
  // The stop reason decides, and not the state of the workflow. After the update `cancelRunning` without a request to cancel the
  // workflow, the Temporal server shows the batch as failed.
  if (stopReason === 'cancel-running' || stopReason === 'cancelled')
    return { state: 'cancelled', type: 'cancelled', message: null } as const;
  const count = `${ended} of ${pluralize(items, 'item')} ended.`;
  if (stopReason === 'max-failures') {
    const continuing =
      ended < items ? ' To continue, run the batch again with a higher `--max-failures`.' : '';
    const message =
      `${pluralize(countFailures(memo), 'item')} failed, which is more than the maximum. ${count}${continuing} ` +
      'To send the items that were not sent or were rejected, run `batch retry`.';
    return { state: 'max-failures-exceeded', type: 'MaxFailuresExceeded', message } as const;
  }
  if (ended >= items) return { state: 'done', type: 'done', message: null } as const;
  const message = `The batch was reset, an operator completed its activity, or its items were deleted. ${count} To continue, start the same batch again. No message is sent twice, unless the batch was reset and started items were deleted.`;
  return { state: 'incomplete', type: 'BatchIncomplete', message } as const;
}

const ADVICE_AFTER_FAILURES =
  'run `batch results` to see the outcome of each item, or `batch retry` to send the items that were not sent or were rejected';
const ADVICE_AFTER_STOP =
  'to continue the batch, run `batch run` with the same file; running items continue unless they were cancelled too';

const UNCHANGED_NOTE =
  'for these items, no read showed a turn after the message; to list these items, run `agent-follow-up list --outcome unchanged --batch` with the batch ID';

const ADVICE_BY_STATE: Partial<Record<BatchState, string>> = {
  paused: 'run `batch resume` to start the next items; running items continue while the batch is paused',
  'max-failures-exceeded': ADVICE_AFTER_FAILURES,
  incomplete: ADVICE_AFTER_STOP,
  cancelled: ADVICE_AFTER_STOP,
  terminated: ADVICE_AFTER_STOP,
};

/** Returns the rows that the Web UI and the CLI show. */
export function batchRows({ state, message, summary }: BatchView) {
  const hasFailures = state === 'done' && Object.keys(summary?.byFailure ?? {}).length > 0;
  // A batch that failed has a summary, unless its input was rejected.
  const isRejected = state === 'incomplete' && summary === null;
  const next = isRejected
    ? 'correct the input, and start the batch with another batch ID'
    : ADVICE_BY_STATE[state];
  const rows: [name: string, value: string | null | undefined][] = [
    ['state', state],
    ['why', message],
    ['what to do', hasFailures ? ADVICE_AFTER_FAILURES : next],
  ];
  if (summary !== null) {
    const { ended, items, open, concurrency, unknownDeliveries, startedAt, endedAt } = summary;
    const formatCounts = (counts: Readonly<Record<string, number>>) =>
      Object.entries(counts)
        .map(([each, count]) => `${each} × ${count}`)
        .join(', ');
    const lasted = Date.parse(endedAt ?? '') - Date.parse(startedAt);
    rows.push(
      ['items', `${ended} of ${items} ended`],
      ['running', endedAt === null ? `${open} (concurrency ${concurrency})` : null],
      ['status', formatCounts(summary.byStatus)],
      ['failure', formatCounts(summary.byFailure)],
      ['evidence', formatCounts(summary.byEvidence)],
      ['unchanged', summary.byEvidence.unchanged ? UNCHANGED_NOTE : null],
      ['unknown', `${unknownDeliveries} deliveries`],
      ['started', startedAt],
      ['ended', endedAt && `${endedAt} (after ${formatDuration(lasted)})`],
    );
  }
  return rows.flatMap(([name, value]) => (value ? [[name, value] as const] : []));
}

/** Returns the current details for the Web UI. @param now in milliseconds since the epoch */
export function batchDetails(summary: BatchProgress, now: number): string {
  const { batchId, firstFailures } = summary;
  const rows = [
    ...batchRows({ ...summary, summary }),
    [
      'as of',
      `${new Date(now).toISOString().slice(0, 19)}Z; ${code('batch status')} shows the latest progress`,
    ],
    ['item workflows', `the workflows with ${code(`FollowUpBatch = "${batchId}"`)}`],
  ] as const;
  const failures = firstFailures.map(({ workflowId, outcome, message }) =>
    ['-', code(workflowId), message === null ? outcome : `${outcome}: ${code(message)}`].join(' '),
  );
  const parts = [`**Batch ${code(batchId)}**`, markdownTable(rows)];
  if (failures.length > 0) parts.push('**First failures**', failures.join('\n'));
  return parts.join('\n\n');
}
