import type { End } from '../end';
import { counted, markdownCode as code, markdownTable } from '../text';
import { formatDuration } from '../units';
import { type BatchMemo, COUNTS, failuresOf, pick, type Position } from './state';

/** The result of `followUpBatch`: a summary, never the items themselves. */
export interface BatchSummary extends Pick<Position, (typeof COUNTS)[number]> {
  readonly batchId: string;
  readonly items: number;
  readonly startedAt: string;
  readonly endedAt: string;
}

/** How one item of a batch ended. */
export interface ItemEnd extends End {
  readonly workflowId: string;
  readonly projectId: string;
  readonly jobId: string;
  readonly requestId: string;
  /** ISO 8601, UTC. */
  readonly settledAt: string;
}

/** How a batch stands, and how it can end. */
export type BatchState =
  'running' | 'paused' | 'ending' | 'done' | 'tolerance-exceeded' | 'incomplete' | 'cancelled' | 'terminated';

/** The answer of the query `progress` of a batch, and of its updates. */
export interface BatchProgress extends Omit<BatchSummary, 'endedAt'> {
  readonly state: BatchState;
  /** Why it ends, or has ended, before its items, and what helps; otherwise null. */
  readonly message: string | null;
  /** Follow-ups that run, by the latest look. */
  readonly open: number;
  readonly concurrency: number;
}

/** Where a batch stands, or how it has ended. */
export interface BatchView {
  readonly state: BatchState;
  /** What went wrong, or why nothing goes on; null if all is well. */
  readonly message: string | null;
  /** Null if no worker has taken it up, and for a batch that was terminated. */
  readonly summary: BatchSummary | BatchProgress | null;
}

export function summaryOf(memo: BatchMemo): Omit<BatchSummary, 'endedAt'> {
  return pick(memo, ['batchId', 'items', ...COUNTS, 'startedAt']);
}

/** @param run how the workflow stands, in the words of `stateOf` */
export function progressOf(
  memo: BatchMemo,
  run: 'running' | 'completed' | 'failed' | 'cancelled' | 'terminated' | 'timed-out',
): BatchProgress {
  const { open, concurrency, paused, ending } = memo;
  const why = whyIncomplete(memo);
  const ended = why?.state ?? 'done';
  const going = ending !== null ? 'ending' : paused ? 'paused' : 'running';
  const killed = run === 'terminated' || run === 'timed-out';
  // Told so by its update only, a batch ends as failed.
  const isCancelled = ending === 'cancel-running' || ending === 'cancelled' || run === 'cancelled';
  const over = killed ? 'terminated' : isCancelled ? 'cancelled' : ended;
  const state = run === 'running' ? going : over;
  const message = state === ended || ending !== null ? (why?.message ?? null) : null;
  return { ...summaryOf(memo), state, message, open, concurrency };
}

/** Why a batch ends before its items, and what helps; null for a batch that is done or was cancelled. */
export function whyIncomplete(memo: BatchMemo) {
  const { items, settled, ending } = memo;
  const ended = `${settled} of ${counted(items, 'item')} ended.`;
  if (ending === 'tolerance') {
    const message =
      `${counted(failuresOf(memo), 'item')} failed, more than the tolerance allows. ${ended} Started again, the batch ` +
      'starts nothing unless its tolerance is raised (`--tolerate`); a retry sends what was not sent or was rejected.';
    return { type: 'ToleranceExceeded', state: 'tolerance-exceeded', message } as const;
  }
  if (ending === 'cancel-running' || ending === 'cancelled' || settled >= items) return null;
  const message = `Somebody has reset the batch, ended its activity or deleted its items. ${ended} The same batch started again continues: what was sent is not sent again.`;
  return { type: 'BatchIncomplete', state: 'incomplete', message } as const;
}

const AFTER_FAILURES =
  '`batch results` prints the end of each item; `batch retry` sends what was not sent or was rejected';
const AFTER_STOP =
  '`batch run` with the same file continues it; open items continue unless they were cancelled too';

/** What an operator can do. */
const NEXT_STEP: Partial<Record<BatchState, string>> = {
  paused: '`batch resume` starts items again, and open ones continue meanwhile',
  'tolerance-exceeded': AFTER_FAILURES,
  incomplete: AFTER_STOP,
  cancelled: AFTER_STOP,
  terminated: AFTER_STOP,
};

/** What is shown of a batch, in the Web UI and by the starter. */
export function batchRows(view: BatchView): (readonly [name: string, value: string])[] {
  const { state, message, summary } = view;
  const hasFailures = state === 'done' && Object.keys(summary?.byFailure ?? {}).length > 0;
  const rows: [name: string, value: string | null | undefined][] = [
    ['state', state],
    ['why', message],
    ['what to do', hasFailures ? AFTER_FAILURES : NEXT_STEP[state]],
  ];
  if (summary !== null) {
    const { settled, items, byStatus, byFailure, byEvidence, unknownDeliveries, startedAt } = summary;
    const inWords = (counts: Readonly<Record<string, number>>) =>
      Object.entries(counts)
        .map(([each, count]) => `${each} × ${count}`)
        .join(', ');
    rows.push(['settled', `${settled} of ${items}`]);
    if ('open' in summary) rows.push(['open', `${summary.open} (concurrency ${summary.concurrency})`]);
    rows.push(
      ['status', inWords(byStatus)],
      ['failure', inWords(byFailure)],
      ['evidence', inWords(byEvidence)],
      ['unknown', `${unknownDeliveries} deliveries`],
      ['started', startedAt],
    );
    if ('endedAt' in summary) {
      const ms = Date.parse(summary.endedAt) - Date.parse(startedAt);
      rows.push(['ended', `${summary.endedAt} (after ${formatDuration(ms)})`]);
    }
  }
  return rows.flatMap(([name, value]) => (value ? [[name, value] as const] : []));
}

/** The current details for the Web UI. @param now in milliseconds since the epoch */
export function batchDetails(summary: BatchProgress, now: number): string {
  const { batchId, state, message, firstFailures } = summary;
  const rows = [
    ...batchRows({ state, message, summary }),
    ['as of', `${new Date(now).toISOString().slice(0, 19)}Z; ${code('batch status')} knows the latest`],
    ['its items', `the workflows with ${code(`FollowUpBatch = "${batchId}"`)}`],
  ] as const;
  const failures = firstFailures.map(({ workflowId, outcome, message: words }) =>
    ['-', code(workflowId), words === null ? outcome : `${outcome}: ${code(words)}`].join(' '),
  );
  const parts = [`**Batch ${code(batchId)}**`, markdownTable(rows)];
  if (failures.length > 0) parts.push('**First failures**', failures.join('\n'));
  return parts.join('\n\n');
}
