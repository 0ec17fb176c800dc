import { Command } from 'commander';
import { addStartFlags, type StartFlags } from '../../batch/flags';
import { runBatch } from '../../batch/run-batch';
import type { Session } from '../../session';

interface RetryFlags extends StartFlags {
  readonly includeUnknown?: boolean;
}

export function batchRetryCommand(session: Session): Command {
  const command = new Command('retry')
    .summary('send what was not sent or was rejected')
    .description(
      'Runs an ended batch once more: sends exactly those of its items whose message was not sent or was rejected, under ' +
        'their own names, and waits for it as run does. Every other item keeps its end. Whatever is run next, this ' +
        'command again or "batch run" with the same file, sends no item twice.',
    )
    .argument('<batch>', 'batch id, or workflow id')
    .option(
      '--include-unknown',
      'items too of which nobody can tell whether their message arrived: those that did are sent twice',
    );
  return addStartFlags(command)
    .addHelpText('after', `\nExample:\n  $ ${session.command('batch', 'retry', 'nightly-07-31')}`)
    .action((batch: string, flags: RetryFlags) => retry(session, batch, flags));
}

async function retry(session: Session, batchId: string, flags: RetryFlags): Promise<void> {
  const includeUnknown = flags.includeUnknown === true;
  const unknown = includeUnknown
    ? ''
    : ' --include-unknown takes those too of which nobody can tell whether their message arrived.';
  await runBatch(
    session,
    batchId,
    (batches, options) => batches.retry(batchId, { ...options, includeUnknown }),
    flags,
    `Nothing to try again: no message of ${batchId} was left unsent or rejected.${unknown} This is its end`,
  );
}
