import { Command } from 'commander';
import { columns } from '../../table';
import { addScheduleFlags, type ScheduleFlags, scheduleOptionsOf } from '../../schedule/flags';
import { readItems, refuseLineFlags } from '../../schedule/items';
import { addLineFlags, type LineFlags } from '../../request-flags';
import type { Session } from '../../session';

interface UpdateFlags extends ScheduleFlags, LineFlags {
  readonly taskQueue?: string;
  readonly json?: boolean;
}

export function scheduleUpdateCommand(session: Session): Command {
  const command = new Command('update')
    .summary('change when a schedule fires, or what it sends')
    .description(
      'Changes what is given and leaves the rest. Timing (--cron, --calendar, --every with --offset) is replaced as a ' +
        'whole, and so are the items, with their options, where a file is given. A batch that runs goes on as it was.',
    )
    .argument('<id>', 'of the schedule')
    .argument('[file]', 'JSON Lines or CSV, as for batch run; - for stdin (default: the items that it has)');
  addScheduleFlags(command)
    .option('--no-start-at', 'from now on')
    .option('--no-end-at', 'without an end')
    .option('--no-pause-on-failure', 'go on when a batch fails')
    .option('--no-tolerate', 'any number of failures')
    .option('--task-queue <name>', 'where its batches run (default: as before)')
    .option('--json', 'print one JSON document: { scheduleId, changed }');
  return addLineFlags(command)
    .addHelpText(
      'after',
      `
Examples:
  $ ${session.command('schedule', 'update', 'nightly')} --cron "30 2 * * *" --timezone Europe/Berlin
  $ ${session.command('schedule', 'update', 'nightly', 'jobs.csv', '--prompt')} "Fix the links."`,
    )
    .action((id: string, file: string | undefined, flags: UpdateFlags) => update(session, id, file, flags));
}

async function update(
  session: Session,
  id: string,
  file: string | undefined,
  flags: UpdateFlags,
): Promise<void> {
  const { output } = session;
  const { note, taskQueue } = flags;
  const options = scheduleOptionsOf(flags);
  if (file === undefined) refuseLineFlags(flags);
  const batch = file === undefined ? undefined : await readItems(session, id, file, flags);
  const { schedules } = await session.connect();
  const changed = await schedules.update(id, {
    ...options,
    ...(batch === undefined ? {} : { batch }),
    ...(note === undefined ? {} : { note }),
    ...(taskQueue === undefined ? {} : { taskQueue }),
  });
  if (flags.json === true) output.json({ scheduleId: id, changed });
  else if (changed.length > 0) {
    output.result(columns(changed.map(({ what, before, after }) => [what, `${before} → ${after}`])));
  }
  output.note(changed.length > 0 ? 'updated' : 'unchanged: it is as asked for');
}
