import type { End } from '../end';
import { counted, markdownCode as code, markdownTable } from '../text';
import { formatDuration } from '../units';
import { type BatchMemo, COUNTS, failuresOf, pick } from './state';

/** The result of `followUpBatch`: a summary, never the items themselves. */
export interface BatchSummary extends Pick<BatchMemo, (typeof SUMMED)[number]> {
  /** ISO 8601, UTC. */
  readonly endedAt: string;
}

const SUMMED = ['batchId', 'items', ...COUNTS, 'startedAt'] as const;

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
type BatchState =
  'running' | 'paused' | 'ending' | 'done' | 'tolerance-exceeded' | 'incomplete' | 'cancelled' | 'terminated';

/** The answer of the query `progress` of a batch, and of its updates. */
export interface BatchProgress
  extends Omit<BatchSummary, 'endedAt'>, Pick<BatchMemo, 'open' | 'concurrency'> {
  readonly state: BatchState;
  /** Why it ends, or has ended, before its items, and what helps; otherwise null. */
  readonly message: string | null;
  /** Null while it runs. */
  readonly endedAt: string | null;
}

/** Where a batch stands, or how it has ended. */
export interface BatchView extends Pick<BatchProgress, 'state'> {
  /** What went wrong, or why nothing goes on; null if all is well. */
  readonly message: string | null;
  /** Null if no worker has taken it up, and for a batch that was terminated. */
  readonly summary: BatchProgress | null;
}

export function summaryOf(memo: BatchMemo) {
  return pick(memo, SUMMED);
}

/** @param run how the workflow stands, in the words of `stateOf` @param endedAt ISO 8601, UTC; null while it runs */
export function progressOf(memo: BatchMemo, run: string, endedAt: string | null = null): BatchProgress {
  const { open, concurrency, paused, ending } = memo;
  const end = endOf(memo);
  const going = ending !== null ? 'ending' : paused ? 'paused' : 'running';
  const killed = run === 'terminated' || run === 'timed-out';
  const over = killed ? 'terminated' : run === 'cancelled' ? run : end.state;
  const state = run === 'running' ? going : over;
  const message = state === end.state || ending !== null ? end.message : null;
  return { ...summaryOf(memo), state, message, open, concurrency, endedAt };
}

/** How a batch ends that nobody terminates: why before its items, and what helps. */
export function endOf(memo: BatchMemo) {
  const { items, settled, ending } = memo;
  // Told so by its update only, it ends as failed.
  if (ending === 'cancel-running' || ending === 'cancelled')
    return { state: 'cancelled', type: 'cancelled', message: null } as const;
  const ended = `${settled} of ${counted(items, 'item')} ended.`;
  if (ending === 'tolerance') {
    const message =
      `${counted(failuresOf(memo), 'item')} failed, more than the tolerance allows. ${ended} Started again, the batch ` +
      'starts nothing unless its tolerance is raised (`--tolerate`); a retry sends what was not sent or was rejected.';
    return { state: 'tolerance-exceeded', type: 'ToleranceExceeded', message } as const;
  }
  if (settled >= items) return { state: 'done', type: 'done', message: null } as const;
  const message = `Somebody has reset the batch, ended its activity or deleted its items. ${ended} The same batch started again continues: what was sent is not sent again.`;
  return { state: 'incomplete', type: 'BatchIncomplete', message } as const;
}

const AFTER_FAILURES =
  '`batch results` prints the end of each item; `batch retry` sends what was not sent or was rejected';
const AFTER_STOP =
  '`batch run` with the same file continues it; open items continue unless they were cancelled too';

const NEXT_STEP: Partial<Record<BatchState, string>> = {
  paused: '`batch resume` starts items again, and open ones continue meanwhile',
  'tolerance-exceeded': AFTER_FAILURES,
  incomplete: AFTER_STOP,
  cancelled: AFTER_STOP,
  terminated: AFTER_STOP,
};

/** For the Web UI and the starter. */
export function batchRows({ state, message, summary }: BatchView) {
  const hasFailures = state === 'done' && Object.keys(summary?.byFailure ?? {}).length > 0;
  // A batch has a summary from its first task on, unless its input was refused.
  const isRefused = state === 'incomplete' && summary === null;
  const next = isRefused ? 'correct its input, and start it under another batch id' : NEXT_STEP[state];
  const rows: [name: string, value: string | null | undefined][] = [
    ['state', state],
    ['why', message],
    ['what to do', hasFailures ? AFTER_FAILURES : next],
  ];
  if (summary !== null) {
    const { settled, items, open, concurrency, unknownDeliveries, startedAt, endedAt } = summary;
    const inWords = (counts: Readonly<Record<string, number>>) =>
      Object.entries(counts)
        .map(([each, count]) => `${each} × ${count}`)
        .join(', ');
    const lasted = Date.parse(endedAt ?? '') - Date.parse(startedAt);
    rows.push(
      ['settled', `${settled} of ${items}`],
      ['open', endedAt === null ? `${open} (concurrency ${concurrency})` : null],
      ['status', inWords(summary.byStatus)],
      ['failure', inWords(summary.byFailure)],
      ['evidence', inWords(summary.byEvidence)],
      ['unknown', `${unknownDeliveries} deliveries`],
      ['started', startedAt],
      ['ended', endedAt && `${endedAt} (after ${formatDuration(lasted)})`],
    );
  }
  return rows.flatMap(([name, value]) => (value ? [[name, value] as const] : []));
}

/** The current details for the Web UI. @param now in milliseconds since the epoch */
export function batchDetails(summary: BatchProgress, now: number): string {
  const { batchId, firstFailures } = summary;
  const rows = [
    ...batchRows({ ...summary, summary }),
    ['as of', `${new Date(now).toISOString().slice(0, 19)}Z; ${code('batch status')} knows the latest`],
    ['its items', `the workflows with ${code(`FollowUpBatch = "${batchId}"`)}`],
  ] as const;
  const failures = firstFailures.map(({ workflowId, outcome, message }) =>
    ['-', code(workflowId), message === null ? outcome : `${outcome}: ${code(message)}`].join(' '),
  );
  const parts = [`**Batch ${code(batchId)}**`, markdownTable(rows)];
  if (failures.length > 0) parts.push('**First failures**', failures.join('\n'));
  return parts.join('\n\n');
}
