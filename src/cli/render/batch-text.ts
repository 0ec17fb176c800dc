import type { BatchOutcome, BatchProgress, BatchReport, BatchSummary, ItemEnd } from '../../client';
import type { FailedItem } from '../../core/batch';
import { formatDuration } from '../../core/units';
import { EXIT } from '../exit-codes';
import type { Session } from '../session';
import { columns } from './text';

/** How an item ended, as one line; the link or the message comes last, because it may be long. */
export function itemLine(end: ItemEnd): string {
  const { settledAt, outcome, delivery, projectId, jobId } = end;
  const told = outcomeText(end);
  const parts = [
    settledAt.slice(0, 19) + 'Z',
    outcome.padEnd(OUTCOME_COLUMNS),
    (delivery ?? '-').padEnd(DELIVERY_COLUMNS),
    `${projectId}/${jobId}`,
  ];
  return [...parts, ...(told === '' ? [] : [told])].join('  ');
}

/** `DeadlineExceeded` and `FollowUpRejected` are the longest of their kind, `not-sent` and `accepted` of theirs. */
const OUTCOME_COLUMNS = 'FollowUpRejected'.length;
const DELIVERY_COLUMNS = 'accepted'.length;

/** What became of an item: its link, or what went wrong. */
function outcomeText({ prLink, message }: Pick<ItemEnd, 'prLink' | 'message'>): string {
  return message ?? prLink ?? '';
}

/** One line for an item that failed, while its batch is watched. */
export function failureLine(end: ItemEnd): string {
  const { settledAt, projectId, jobId, outcome } = end;
  const words = [outcome, `${projectId}/${jobId}`, outcomeText(end)].filter((word) => word !== '');
  return `${settledAt.slice(11, 19)}Z ${words.join('  ')}`;
}

/** @param meter how far it is, and how fast */
export function batchLine(progress: BatchProgress, meter: string): string {
  const { state, items, settled, open, byStatus, byFailure, unknownDeliveries, pages } = progress;
  const waiting = items - settled - open;
  return [
    ...(state === 'running' ? [] : [STATE_WORDS[state]]),
    meter,
    `open ${open}`,
    ...Object.entries({ ...byStatus, ...byFailure }).map(([name, count]) => `${name} ${count}`),
    ...(unknownDeliveries > 0 ? [`unknown deliveries ${unknownDeliveries}`] : []),
    ...(waiting > 0 ? [`to come ${waiting}`] : []),
    ...(pages.handedOver < pages.total ? [`${pages.handedOver} of ${pages.total} pages handed over`] : []),
  ].join(' · ');
}

const STATE_WORDS: Readonly<Record<BatchProgress['state'], string>> = {
  running: 'running',
  paused: 'paused; "batch resume" continues it',
  ending: 'ending; no further item starts',
  done: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
};

/** Where a batch stands, as a table. */
function progressTable(progress: BatchProgress): [string, string][] {
  const { state, open, concurrency, pages, startedAt } = progress;
  return [
    ['batch', progress.batchId],
    ['state', state],
    ['settled', `${progress.settled} of ${progress.items}`],
    ['open', `${open} (concurrency ${concurrency})`],
    ...countRows(progress),
    ['pages', `${pages.handedOver} of ${pages.total} handed over, ${pages.done} done`],
    ['started', startedAt],
  ];
}

/** The summary of a batch as a table. */
export function summaryTable(summary: BatchSummary): [string, string][] {
  const { startedAt, endedAt } = summary;
  return [
    ['settled', `${summary.settled} of ${summary.items}`],
    ...countRows(summary),
    ['started', startedAt],
    ['ended', `${endedAt} (after ${formatDuration(Date.parse(endedAt) - Date.parse(startedAt))})`],
  ];
}

export function failureLines(failures: readonly FailedItem[]): string[] {
  if (failures.length === 0) return [];
  return [
    'first failures',
    ...failures.map(
      ({ workflowId, outcome, message }) =>
        `  ${workflowId}  ${outcome}${message === null ? '' : `: ${message}`}`,
    ),
  ];
}

/** What the server knows while no worker answers. */
export function serverWords({ description, workers }: Extract<BatchReport, { from: 'server' }>): string {
  return workers === 0
    ? `no worker answers on task queue ${description.taskQueue} (yet); the batch waits, nothing is lost`
    : `the worker on task queue ${description.taskQueue} does not answer (yet); nothing is lost`;
}

function countRows(
  counts: Pick<BatchSummary, 'byStatus' | 'byFailure' | 'byEvidence' | 'unknownDeliveries'>,
): [string, string][] {
  return [
    ['status', counted(counts.byStatus)],
    ['failure', counted(counts.byFailure)],
    ['evidence', counted(counts.byEvidence)],
    ['unknown', `${counts.unknownDeliveries} deliveries`],
  ];
}

function counted(counts: Readonly<Record<string, number>>): string {
  const words = Object.entries(counts).map(([name, count]) => `${name} × ${count}`);
  return words.length === 0 ? '-' : words.join(', ');
}

export function exitCodeOfBatch({ state }: Pick<BatchOutcome, 'state'>): number {
  switch (state) {
    case 'done':
      return EXIT.completed;
    case 'tolerance-exceeded':
      return EXIT.beyondTolerance;
    case 'cancelled':
      return EXIT.cancelled;
    case 'incomplete':
    case 'terminated':
      return EXIT.other;
  }
}

/** How a batch has ended, or where it stands, in the same form. */
interface EndOrState {
  readonly state: BatchOutcome['state'] | BatchProgress['state'];
  readonly message: string | null;
  readonly summary: (Omit<BatchSummary, 'endedAt'> & { readonly endedAt: string | null }) | null;
}

/**
 * The last line of `--json`.
 *
 * @param asked the batch id or workflow id that was asked for; the summary knows the batch id
 */
export function documentOfBatch(asked: string, { state, message, summary }: EndOrState) {
  return { batchId: summary?.batchId ?? asked, state, message, summary };
}

/** Prints the end of a batch. Its summary is a result whatever the end is, and goes to stdout. */
export function printBatchOutcome(
  session: Session,
  asked: string,
  outcome: BatchOutcome,
  json: boolean,
): void {
  const { output } = session;
  const { state, message, summary } = outcome;
  const batchId = summary?.batchId ?? asked;
  session.exitCode = exitCodeOfBatch(outcome);
  if (message !== null) output.note(`${state}: ${message}`);
  if (json) {
    output.json(documentOfBatch(batchId, outcome));
    return;
  }
  const rows: [string, string][] = [
    ['batch', batchId],
    ['state', state],
  ];
  output.result(columns([...rows, ...(summary === null ? [] : summaryTable(summary))]));
  for (const line of failureLines(summary?.firstFailures ?? [])) output.result(line);
  output.note(`each item   ${session.command('batch', 'results', batchId)}`);
}

/** Where a batch stands, as a result. */
export function printProgress({ output }: Session, progress: BatchProgress, json: boolean): void {
  if (json) {
    output.json(progress);
    return;
  }
  output.result(columns(progressTable(progress)));
  for (const line of failureLines(progress.firstFailures)) output.result(line);
}
