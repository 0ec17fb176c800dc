import { Command } from 'commander';
import { CONCURRENCY } from '../../../contract/batch';
import { concurrencyOf } from '../../batch/flags';
import { tellProgress } from '../../batch/tell-progress';
import type { Session } from '../../session';

export function batchConcurrencyCommand(session: Session): Command {
  return new Command('concurrency')
    .summary('change how many follow-ups of a batch are open at a time')
    .description(
      'Changes how many follow-ups of a running batch are open at a time. Fewer than are open end none of them: items ' +
        'start again once there are fewer. Prints where it stands.',
    )
    .argument('<batch>', 'batch id, or workflow id')
    .argument('<n>', `${CONCURRENCY.minimum} to ${CONCURRENCY.maximum}`)
    .option('--json', 'print the progress as one JSON document')
    .action(async (batch: string, places: string, flags: { json?: boolean }) => {
      const concurrency = concurrencyOf(places);
      const { batches } = await session.connect();
      tellProgress(session, await batches.setConcurrency(batch, concurrency), flags.json === true);
    });
}
