import type { BatchOutcome, BatchProgress, BatchReport, BatchSummary, ItemEnd } from '../../client';
import { nextStepOfBatch } from '../../core/batch/progress';
import { formatDuration } from '../../core/units';
import { EXIT } from '../ends';
import type { Session } from '../session';
import { countsText, rowIf } from './follow-up';
import { columns, type Row } from './text';

/** How an item ended, as one line; the link or the message comes last, because it may be long. */
export function itemLine(end: ItemEnd): string {
  const { settledAt, outcome, delivery, projectId, jobId, message, prLink } = end;
  const parts = [
    settledAt.slice(0, 19) + 'Z',
    outcome.padEnd('FollowUpRejected'.length),
    (delivery ?? '-').padEnd('accepted'.length),
    `${projectId}/${jobId}`,
    message ?? prLink ?? '',
  ];
  return parts.join('  ').trimEnd();
}

/** @param meter how far it is, and how fast */
export function batchLine(progress: BatchProgress, meter: string): string {
  const { state, items, settled, open, byStatus, byFailure, unknownDeliveries } = progress;
  const waiting = items - settled - open;
  const parts = [
    state !== 'running' && (state === 'paused' ? 'paused; "batch resume" continues it' : state),
    meter,
    `open ${open}`,
    ...Object.entries({ ...byStatus, ...byFailure }).map(([name, count]) => `${name} ${count}`),
    unknownDeliveries > 0 && `unknown deliveries ${unknownDeliveries}`,
    waiting > 0 && `to come ${waiting}`,
  ];
  return parts.filter(Boolean).join(' · ');
}

function rowsOf(counts: BatchSummary | BatchProgress): Row[] {
  const { settled, items, byStatus, byFailure, byEvidence, unknownDeliveries, startedAt } = counts;
  const rows: Row[] = [['settled', `${settled} of ${items}`]];
  if ('open' in counts) {
    const { open, concurrency } = counts;
    rows.push(['open', `${open} (concurrency ${concurrency})`]);
  }
  const tallies = { status: byStatus, failure: byFailure, evidence: byEvidence };
  for (const [name, tally] of Object.entries(tallies)) rows.push([name, countsText(tally) || '-']);
  rows.push(['unknown', `${unknownDeliveries} deliveries`], ['started', startedAt]);
  if ('endedAt' in counts) {
    const after = formatDuration(Date.parse(counts.endedAt) - Date.parse(startedAt));
    rows.push(['ended', `${counts.endedAt} (after ${after})`]);
  }
  return rows;
}

/** How a batch has ended, or where it stands. */
export interface BatchView {
  readonly state: BatchOutcome['state'] | BatchProgress['state'];
  /** What went wrong, or why nothing goes on; null if all is well. */
  readonly message: string | null;
  /** Null if no worker has taken it up, and for a batch that was terminated. */
  readonly summary: BatchSummary | BatchProgress | null;
}

/** A running batch in the form of one that has ended. */
export function viewOf(progress: BatchProgress): BatchView {
  return { state: progress.state, message: progress.message, summary: progress };
}

export function standingOf(report: BatchReport): BatchView {
  const { progress, trouble } = report;
  const state = progress?.state ?? 'running';
  return { state, message: trouble ?? progress?.message ?? null, summary: progress };
}

/** The document of `--json`, and its last line. @param asked the batch id, or the workflow id, that was asked for */
export function documentOfBatch(asked: string, view: BatchView) {
  return { batchId: view.summary?.batchId ?? asked, ...view };
}

/** However a batch has ended or stands, that is a result, and goes to stdout. */
export function printBatch(session: Session, asked: string, view: BatchView): void {
  const document = documentOfBatch(asked, view);
  const { batchId, state, message, summary } = document;
  const rows: Row[] = [
    ['batch', batchId],
    ['state', state],
    ...rowIf('why', message),
    ...rowIf('what to do', nextStepOfBatch(state, summary?.byFailure ?? {})),
    ...(summary === null ? [] : rowsOf(summary)),
  ];
  const failures = (summary?.firstFailures ?? []).map(({ workflowId, outcome, message: words }) =>
    ['', workflowId, words === null ? outcome : `${outcome}: ${words}`].join('  '),
  );
  const text = [columns(rows), ...(failures.length > 0 ? ['first failures', ...failures] : [])];
  session.print(document, text.join('\n'));
}

const EXIT_CODES: Readonly<Record<BatchOutcome['state'], number>> = {
  done: EXIT.completed,
  'tolerance-exceeded': EXIT.beyondTolerance,
  cancelled: EXIT.cancelled,
  incomplete: EXIT.other,
  terminated: EXIT.other,
};

export function printBatchEnd(session: Session, batchId: string, outcome: BatchOutcome): void {
  session.exitCode = EXIT_CODES[outcome.state];
  printBatch(session, batchId, outcome);
  if (!session.isJson) session.note(`each item   ${session.command('batch', 'results', batchId)}`);
}

/** How many of the items have settled, after a list of their ends. */
export function settledLine(settled: number, { state, message, summary }: BatchView): string {
  const of = summary === null ? '' : ` of ${summary.items}`;
  return `${settled}${of} settled; the batch is ${state}${message === null ? '' : `: ${message}`}`;
}
