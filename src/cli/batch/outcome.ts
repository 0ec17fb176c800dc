import type { BatchOutcome, BatchProgress, BatchSummary } from '../../client';
import { EXIT } from '../exit-codes';
import { columns } from '../table';
import type { Session } from '../session';
import { failureLines, summaryTable } from './text';

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

/** Tells the end of a batch. Its summary is a result, whatever the end: it goes to stdout. */
export function tellBatchOutcome(
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
