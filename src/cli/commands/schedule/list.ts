import { Command } from 'commander';
import { scheduleTable } from '../../schedule/text';
import type { Session } from '../../session';

export function scheduleListCommand(session: Session): Command {
  return new Command('list')
    .summary('schedules of the namespace: next firings, last ends')
    .description(
      'Lists the schedules of follow-ups with their next firing, and the end of the last one. The list is eventually ' +
        'consistent: what has just been made or changed may be missing or shown as it was a moment ago.',
    )
    .option('--json', 'print one JSON array')
    .action(async (flags: { json?: boolean }) => {
      const { output } = session;
      const found = await (await session.connect()).schedules.list();
      if (flags.json === true) {
        output.json(found);
        return;
      }
      if (found.length > 0) output.result(scheduleTable(found));
      output.note(
        found.length === 0
          ? 'No schedules found. The list is eventually consistent: one that was just made appears within seconds.'
          : `${found.length}; eventually consistent`,
      );
    });
}
