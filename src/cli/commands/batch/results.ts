import { Command } from 'commander';
import { type BatchClient, EndsUnreadableError, type ItemEnd } from '../../../client';
import { documentOfBatch } from '../../batch/outcome';
import { itemLine } from '../../batch/text';
import type { Session } from '../../session';

export function batchResultsCommand(session: Session): Command {
  return new Command('results')
    .summary('how each item of a batch has ended so far')
    .description(
      'Prints a line for each item that has settled, in the order of settling, and how many there are. Of a batch that ' +
        'runs it prints what there is and does not wait; "batch watch --json" does.',
    )
    .argument('<batch>', 'batch id, or workflow id')
    .option('--json', 'print JSON lines: one per item, and { batchId, state, message, summary } at the end')
    .addHelpText(
      'after',
      `\nExample:\n  $ ${session.command('batch', 'results', 'nightly-07-31', '--json')} | jq -r 'select(.prLink) | .prLink'`,
    )
    .action((batch: string, flags: { json?: boolean }) => results(session, batch, flags.json === true));
}

async function results(session: Session, batchId: string, json: boolean): Promise<void> {
  const { output } = session;
  const { batches } = await session.connect();
  output.jsonLines = json;
  const { ends, trouble } = await readEnds(batches, batchId);
  for (const end of ends) {
    if (json) output.json(end);
    else output.result(itemLine(end));
  }
  if (trouble !== null) throw trouble;
  const last = await summaryOf(batches, batchId);
  if (json) {
    output.json(last);
    return;
  }
  const { state, summary } = last;
  output.note(
    `${ends.length}${summary === null ? '' : ` of ${summary.items}`} settled; the batch is ${state}`,
  );
}

/** The ends that can be read, and why the others can't be. */
async function readEnds(
  batches: BatchClient,
  batchId: string,
): Promise<{ readonly ends: readonly ItemEnd[]; readonly trouble: EndsUnreadableError | null }> {
  try {
    return { ends: await batches.results(batchId), trouble: null };
  } catch (error) {
    if (!(error instanceof EndsUnreadableError)) throw error;
    return { ends: error.ends, trouble: error };
  }
}

/** The last line: how the batch has ended, or where it stands, in the same form. */
async function summaryOf(batches: BatchClient, batchId: string) {
  const { state } = await batches.describe(batchId);
  if (state !== 'running') return documentOfBatch(batchId, await batches.outcome(batchId));
  const progress = await batches.progress(batchId);
  return documentOfBatch(batchId, {
    state: progress.state,
    message: null,
    summary: {
      batchId: progress.batchId,
      items: progress.items,
      settled: progress.settled,
      byStatus: progress.byStatus,
      byFailure: progress.byFailure,
      byEvidence: progress.byEvidence,
      unknownDeliveries: progress.unknownDeliveries,
      firstFailures: progress.firstFailures,
      startedAt: progress.startedAt,
      endedAt: null,
    },
  });
}
