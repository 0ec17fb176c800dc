import { Command } from 'commander';
import { scheduleText } from '../../schedule/text';
import type { Session } from '../../session';

export function scheduleDescribeCommand(session: Session): Command {
  return new Command('describe')
    .summary('a schedule: its settings, next firings, last ends')
    .description(
      'Prints what a schedule sends and when, when it fires next, and how its last ten firings ended. "batch status" tells ' +
        'more of one of them.',
    )
    .argument('<id>', 'of the schedule')
    .option('--json', 'print one JSON document')
    .action(async (id: string, flags: { json?: boolean }) => {
      const schedule = await (await session.connect()).schedules.describe(id);
      if (flags.json === true) session.output.json(schedule);
      else session.output.result(scheduleText(schedule));
    });
}
