import type { End } from '../end';
import { counted, markdownCode as code, markdownCounts as countsOf, markdownTable } from '../text';
import { type BatchMemo, failuresOf, type Position } from './state';

/* What is told of a batch: in its query, its result, the Web UI and the starter. */

/** The types of the failures by which a batch can end, each with the {@link BatchSummary} as its first detail. */
export type BatchFailureType = 'InvalidBatch' | 'ToleranceExceeded' | 'BatchIncomplete';

/** The result of `followUpBatch`: a summary, never the items themselves. */
export interface BatchSummary extends Pick<
  Position,
  'settled' | 'byStatus' | 'byFailure' | 'byEvidence' | 'unknownDeliveries' | 'firstFailures'
> {
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

/** The answer of the query `progress` of a batch, and of its updates. */
export interface BatchProgress extends Omit<BatchSummary, 'endedAt'> {
  readonly state: 'running' | 'paused' | 'ending' | 'done' | 'failed' | 'cancelled';
  /** Why it ends, or has failed, before its items, and what helps; otherwise null. */
  readonly message: string | null;
  /** Follow-ups that run, by the latest look. */
  readonly open: number;
  readonly concurrency: number;
}

export function summaryOf(memo: BatchMemo): Omit<BatchSummary, 'endedAt'> {
  const { batchId, items, startedAt, settled, byStatus, byFailure, byEvidence } = memo;
  const { unknownDeliveries, firstFailures } = memo;
  return {
    batchId,
    items,
    settled,
    byStatus,
    byFailure,
    byEvidence,
    unknownDeliveries,
    firstFailures,
    startedAt,
  };
}

export function progressOf(memo: BatchMemo, ended: BatchProgress['state'] | null = null): BatchProgress {
  const { open, concurrency, paused, ending } = memo;
  const going = paused ? 'paused' : 'running';
  const state = ended ?? (ending === null ? going : 'ending');
  const message = state === 'failed' || ending !== null ? (whyIncomplete(memo)?.message ?? null) : null;
  return { ...summaryOf(memo), state, message, open, concurrency };
}

/** Why a batch ends before its items, and what helps; null for a batch that is done or was cancelled. */
export function whyIncomplete(memo: BatchMemo): { type: BatchFailureType; message: string } | null {
  const { items, settled, ending } = memo;
  const ended = `${settled} of ${counted(items, 'item')} ended.`;
  if (ending === 'tolerance') {
    const message =
      `${counted(failuresOf(memo), 'item')} failed, more than the tolerance allows. ${ended} Started again, the batch ` +
      'starts nothing unless its tolerance is raised (`--tolerate`); a retry sends what was not sent or was rejected.';
    return { type: 'ToleranceExceeded', message };
  }
  if (ending === 'cancel-running' || settled >= items) return null;
  const why =
    ending === 'items-gone'
      ? 'The server no longer has its items.'
      : 'Somebody has reset the batch, or ended its activity.';
  const message = `${why} ${ended} The same batch started again continues: what was sent is not sent again.`;
  return { type: 'BatchIncomplete', message };
}

const AFTER_FAILURES =
  '`batch results` prints the end of each item; `batch retry` sends what was not sent or was rejected; ' +
  'give it a higher `--tolerate` if that was exceeded';
const AFTER_STOP =
  '`batch run` with the same file continues it; open items continue unless they were cancelled too';

const NEXT_STEP = {
  running: 'nothing; `batch pause` starts no further item, `batch cancel` ends it',
  paused: 'somebody paused it; `batch resume` starts items again, and open ones continue meanwhile',
  ending: 'nothing; no further item starts, and it ends with its open items',
  done: 'nothing; `batch results` prints the end of each item',
  failed: AFTER_FAILURES,
  'tolerance-exceeded': AFTER_FAILURES,
  incomplete: AFTER_STOP,
  cancelled: AFTER_STOP,
  terminated: AFTER_STOP,
} as const;

/** What an operator can do with a batch in each state, running or ended, in the words of the starter. */
export function nextStepOfBatch(
  state: keyof typeof NEXT_STEP,
  byFailure: Readonly<Record<string, number>>,
): string {
  return state === 'done' && Object.keys(byFailure).length > 0 ? AFTER_FAILURES : NEXT_STEP[state];
}
/** The current details for the Web UI. @param now when they were written, in milliseconds since the epoch */
export function batchDetails(progress: BatchProgress, now: number): string {
  const { batchId, state, message, firstFailures, unknownDeliveries } = progress;
  const isLive = state === 'running' || state === 'paused' || state === 'ending';
  const counts = {
    'by status': progress.byStatus,
    'by failure': progress.byFailure,
    'by evidence': progress.byEvidence,
  };
  const rows: [string, string][] = [
    ['state', state],
    ...(message === null ? [] : [['why', message] satisfies [string, string]]),
    ['what to do', nextStepOfBatch(state, progress.byFailure)],
    ['settled', `${progress.settled} of ${progress.items}`],
    ['open', `${progress.open} (concurrency ${progress.concurrency})`],
    ...Object.entries(counts).flatMap(([name, each]): [string, string][] =>
      Object.keys(each).length > 0 ? [[name, countsOf(each)]] : [],
    ),
    ['unknown deliveries', String(unknownDeliveries)],
    [
      'as of',
      `${new Date(now).toISOString().slice(0, 19)}Z${isLive ? `; ${code('batch status')} knows the latest` : ''}`,
    ],
    ['its items', `the workflows with ${code(`FollowUpBatch = "${batchId}"`)}`],
  ];
  const failures = firstFailures.map(({ workflowId, outcome, message: words }) =>
    ['-', code(workflowId), words === null ? outcome : `${outcome}: ${code(words)}`].join(' '),
  );
  const parts = [`**Batch ${code(batchId)}**`, markdownTable(rows)];
  if (failures.length > 0) parts.push('**First failures**', failures.join('\n'));
  return parts.join('\n\n');
}
