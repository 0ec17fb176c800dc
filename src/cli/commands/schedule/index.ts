import { Command } from 'commander';
import type { Session } from '../../session';
import { scheduleBackfillCommand } from './backfill';
import { scheduleCreateCommand } from './create';
import { scheduleDeleteCommand } from './delete';
import { scheduleDescribeCommand } from './describe';
import { scheduleListCommand } from './list';
import { schedulePauseCommand, scheduleUnpauseCommand } from './pause';
import { scheduleTriggerCommand } from './trigger';
import { scheduleUpdateCommand } from './update';

/** The subcommands in the order of `schedule --help`. */
const COMMANDS = [
  scheduleCreateCommand,
  scheduleListCommand,
  scheduleDescribeCommand,
  scheduleTriggerCommand,
  schedulePauseCommand,
  scheduleUnpauseCommand,
  scheduleBackfillCommand,
  scheduleUpdateCommand,
  scheduleDeleteCommand,
];

export function scheduleCommand(session: Session): Command {
  const command = new Command('schedule')
    .summary('batches at set times')
    .description(
      'Sends the follow-ups of a file again and again, by a Temporal Schedule. Each firing is a batch of its own, named by ' +
        'the schedule and the time: ID-2026-11-21T03:00:00Z.',
    );
  for (const createCommand of COMMANDS) command.addCommand(createCommand(session));
  return command;
}
