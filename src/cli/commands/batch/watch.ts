import { Command } from 'commander';
import { waitForBatch } from '../../batch/run-batch';
import type { Session } from '../../session';
import { untilSignal } from '../../wait';

export function batchWatchCommand(session: Session): Command {
  return new Command('watch')
    .summary('wait for a batch, as run does')
    .description('Shows how a batch goes on until it ends, and prints its end; its exit code is that of run.')
    .argument('<batch>', 'batch id, or workflow id')
    .option(
      '--json',
      'print JSON lines: one per item in the order of settling, and { batchId, state, message, summary } at the end',
    )
    .addHelpText('after', `\nExample:\n  $ ${session.command('batch', 'watch', 'nightly-07-31')}`)
    .action((batch: string, flags: { json?: boolean }) => watch(session, batch, flags.json === true));
}

async function watch(session: Session, batchId: string, json: boolean): Promise<void> {
  const { batches } = await session.connect();
  await batches.describe(batchId);
  session.output.jsonLines = json;
  const over = new AbortController();
  try {
    await waitForBatch(session, batchId, json, untilSignal(over.signal));
  } finally {
    over.abort();
  }
}
