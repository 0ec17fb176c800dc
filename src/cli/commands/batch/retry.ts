import { Command } from 'commander';
import { BatchConflictError } from '../../../client';
import { addStartFlags, batchOptionsOf, type StartFlags } from '../../batch/flags';
import { runBatch } from '../../batch/run-batch';
import type { Session } from '../../session';
import { UsageError } from '../../usage-error';

interface RetryFlags extends StartFlags {
  readonly includeUnknown?: boolean;
}

export function batchRetryCommand(session: Session): Command {
  const command = new Command('retry')
    .summary('a new batch of what was not sent or was rejected')
    .description(
      'Starts a new batch, B-retry-1 and so on, of exactly those items of an ended batch B whose message was not sent or ' +
        'was rejected, and waits for it as run does. The same retry again is the same batch.',
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
  const { output } = session;
  batchOptionsOf(flags);
  const { batches } = await session.connect();
  const rest = await batches.retryOf(batchId, flags.includeUnknown === true);
  if (rest === null) {
    if (flags.json === true) output.json({ retryOf: batchId, batchId: null, items: 0 });
    const unknown =
      flags.includeUnknown === true
        ? ''
        : ' --include-unknown takes those too of which nobody can tell whether their message arrived.';
    output.note(`Nothing to try again: no message of ${batchId} was left unsent or rejected.${unknown}`);
    return;
  }
  const again = session.command('batch', 'retry', rest.batchId);
  try {
    await runBatch(
      session,
      rest,
      flags,
      `already tried again as ${rest.batchId}, and this is its end; ${again} tries again what that one left`,
    );
  } catch (error) {
    if (!(error instanceof BatchConflictError)) throw error;
    const results = session.command('batch', 'results', batchId, '--json');
    throw new UsageError([
      `${batchId} was tried again before, as ${rest.batchId}, and of other items than these: with --include-unknown ` +
        `one time and without it the other. Nothing was started. ${results} tells the items, for a file of the rest.`,
    ]);
  }
}
