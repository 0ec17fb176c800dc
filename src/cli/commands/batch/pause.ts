import { Command } from 'commander';
import { tellProgress } from '../../batch/tell-progress';
import type { Session } from '../../session';

export function batchPauseCommand(session: Session): Command {
  return new Command('pause')
    .summary('start no further item of a batch until it is resumed')
    .description(
      'Has a batch start no further item; those that are open go on to their ends. Prints where it stands.',
    )
    .argument('<batch>', 'batch id, or workflow id')
    .option('--json', 'print the progress as one JSON document')
    .action(async (batch: string, flags: { json?: boolean }) => {
      const { batches } = await session.connect();
      tellProgress(session, await batches.pause(batch), flags.json === true);
    });
}

export function batchResumeCommand(session: Session): Command {
  return new Command('resume')
    .summary('go on with a batch that is paused')
    .description(
      'Has a paused batch start items again. Prints where it stands. One that has ended is resumed by "batch run" with ' +
        'the same file.',
    )
    .argument('<batch>', 'batch id, or workflow id')
    .option('--json', 'print the progress as one JSON document')
    .action(async (batch: string, flags: { json?: boolean }) => {
      const { batches } = await session.connect();
      tellProgress(session, await batches.resume(batch), flags.json === true);
    });
}
