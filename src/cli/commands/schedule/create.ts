import { Command } from 'commander';
import { addScheduleFlags, type ScheduleFlags, scheduleOptionsOf } from '../../schedule/flags';
import { readItems } from '../../schedule/items';
import { addLineFlags, type LineFlags } from '../../request-flags';
import type { Session } from '../../session';

interface CreateFlags extends ScheduleFlags, LineFlags {
  readonly paused?: boolean;
  readonly json?: boolean;
}

export function scheduleCreateCommand(session: Session): Command {
  const command = new Command('create')
    .summary('send the follow-ups of a file at set times')
    .description(
      'Checks the whole input, and makes a schedule of it; nothing is sent before it fires. The same command again leaves ' +
        'the schedule as it is; another schedule of the same id is an error, and "schedule update" changes one.\n\n' +
        'The items lie in the schedule, 1 MiB of them at most; the file is not read again. They have no request ids of ' +
        'their own: each firing sends anew.',
    )
    .argument('<id>', 'your name for the schedule: letters, digits, -, ., _ and ~')
    .argument('<file>', 'JSON Lines or CSV, as for batch run; - for stdin');
  addScheduleFlags(command)
    .option('--paused', 'it fires only when triggered, until it is unpaused')
    .option('--json', 'print one JSON document: the schedule');
  return addLineFlags(command)
    .addHelpText(
      'after',
      `
Cron and calendar: a value, a-b, *, a step as */15, lists with commas; months JAN to DEC, days SUN to SAT. Day of month
and day of week must both match where both are given. A calendar has second, minute, hour, dayOfMonth, month, dayOfWeek
and year. What falls into the hour that a change to summer time leaves out does not fire on that day.

Examples:
  $ ${session.command('schedule', 'create', 'nightly', 'jobs.csv')} --cron "0 3 * * MON-FRI" --timezone Europe/Berlin
  $ ${session.command('schedule', 'create', 'rebase', 'jobs.jsonl')} --every 6h --offset 30m --tolerate 5% --pause-on-failure
  $ ${session.command('schedule', 'create', 'monthly', 'jobs.csv')} --calendar "dayOfMonth=1 hour=3" --prompt "Rebase on main."`,
    )
    .action((id: string, file: string, flags: CreateFlags) => create(session, id, file, flags));
}

async function create(session: Session, id: string, file: string, flags: CreateFlags): Promise<void> {
  const { output } = session;
  const { note, paused } = flags;
  const options = scheduleOptionsOf(flags);
  const batch = await readItems(session, id, file, flags);
  const { schedules } = await session.connect();
  const made = await schedules.create(id, batch, {
    ...options,
    ...(note === undefined ? {} : { note }),
    ...(paused === undefined ? {} : { paused }),
  });
  const schedule = await schedules.describe(id);
  if (flags.json === true) output.json({ made, ...schedule });
  else output.result(id);
  output.note(made === 'created' ? 'created' : 'exists already, unchanged');
  const [next] = schedule.next;
  if (schedule.paused)
    output.note(`it is paused; ${session.command('schedule', 'unpause', id)} lets it fire`);
  else output.note(next === undefined ? 'it has no time to fire at' : `next        ${next}`);
}
