import { Command } from 'commander';
import type { Session } from '../../session';
import { batchCancelCommand } from './cancel';
import { batchConcurrencyCommand } from './concurrency';
import { batchPauseCommand, batchResumeCommand } from './pause';
import { batchResultsCommand } from './results';
import { batchRetryCommand } from './retry';
import { batchRunCommand } from './run';
import { batchStatusCommand } from './status';
import { batchWatchCommand } from './watch';

/** The subcommands in the order of `batch --help`. */
const COMMANDS = [
  batchRunCommand,
  batchStatusCommand,
  batchWatchCommand,
  batchResultsCommand,
  batchPauseCommand,
  batchResumeCommand,
  batchConcurrencyCommand,
  batchCancelCommand,
  batchRetryCommand,
];

export function batchCommand(session: Session): Command {
  const command = new Command('batch')
    .summary('many follow-ups at a time, from a file')
    .description(
      'Sends the follow-ups of a file, so many at a time, each as a follow-up of its own. The workers do it: a batch goes ' +
        'on when this program ends. A batch is named by its batch id, or by its workflow id.',
    );
  for (const createCommand of COMMANDS) command.addCommand(createCommand(session));
  return command;
}
