import { Command } from 'commander';
import type { Session } from '../../session';

export function scheduleDeleteCommand(session: Session): Command {
  return new Command('delete')
    .summary('remove a schedule')
    .description('Removes a schedule. A batch that runs goes on; "batch cancel" ends it.')
    .argument('<id>', 'of the schedule')
    .option('--json', 'print one JSON document: { scheduleId, deleted, running }')
    .action(async (id: string, flags: { json?: boolean }) => {
      const { output } = session;
      const { schedules } = await session.connect();
      const { running } = await schedules.describe(id);
      await schedules.delete(id);
      if (flags.json === true) output.json({ scheduleId: id, deleted: true, running });
      output.note('deleted');
      for (const batchId of running) output.note(`still runs  ${batchId}`);
    });
}
