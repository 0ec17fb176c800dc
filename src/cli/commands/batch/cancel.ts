import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { BatchEndedError } from '../../../client';
import { documentOfBatch } from '../../batch/outcome';
import { failureLines, summaryTable } from '../../batch/text';
import { columns } from '../../table';
import type { Session } from '../../session';

/** A batch ends within a second, unless messages under way are awaited first, which we don't wait for. */
const END_WITHIN_MS = 10_000;

interface CancelFlags {
  readonly cancelRunning?: boolean;
  readonly json?: boolean;
}

export function batchCancelCommand(session: Session): Command {
  return new Command('cancel')
    .summary('end a batch; its open follow-ups go on')
    .description(
      'Ends a batch: nothing further is started. Follow-ups that are open go on to their ends, and can be listed and ' +
        'cancelled one by one. "batch run" with the same file goes on with it.',
    )
    .argument('<batch>', 'batch id, or workflow id')
    .option(
      '--cancel-running',
      'cancel the open follow-ups too; messages under way are awaited first, and the agents themselves go on',
    )
    .option('--json', 'print one JSON document')
    .action((batch: string, flags: CancelFlags) => cancel(session, batch, flags));
}

async function cancel(session: Session, batchId: string, flags: CancelFlags): Promise<void> {
  const { output } = session;
  const { batches } = await session.connect();
  let already = false;
  try {
    await batches.cancel(batchId, flags.cancelRunning);
  } catch (error) {
    // To cancel what is cancelled is no error; to cancel what has another end is one.
    if (!(error instanceof BatchEndedError) || error.state !== 'cancelled') throw error;
    already = true;
  }
  const outcome = await Promise.race([
    batches.outcome(batchId),
    sleep(END_WITHIN_MS, undefined, { ref: false }),
  ]);
  if (flags.json === true) {
    const end = outcome === undefined ? null : documentOfBatch(batchId, outcome);
    output.json({ batchId, ended: outcome !== undefined, end });
  } else if (outcome?.summary) {
    output.result(columns([['batch', batchId], ['state', outcome.state], ...summaryTable(outcome.summary)]));
    for (const line of failureLines(outcome.summary.firstFailures)) output.result(line);
  }
  if (outcome === undefined) {
    output.note(
      'Cancellation is asked for. The batch ends when messages under way have been answered, and as soon as a worker polls its task queue.',
    );
  } else if (already) {
    output.note('It was cancelled before.');
  }
  if (flags.cancelRunning !== true) {
    output.note(
      `Follow-ups that were open go on; see them with ${session.command('list', '--batch', batchId)}`,
    );
  }
}
