import type { ScheduleOverlapPolicy, ScheduleSummary } from '@temporalio/client';
import { Command } from 'commander';
import type { ScheduleHandle } from '../../client';
import { UsageError } from '../exit-codes';
import { addLineFlags, type LineFlags } from '../flags/request-flags';
import {
  addScheduleFlags,
  newScheduleOf,
  overlapFlag,
  readItems,
  refuseLineFlags,
  type ScheduleFlags,
  scheduleOf,
  timeOf,
} from '../flags/schedule-flags';
import { batchIds, documentOf, nextTimes, scheduleTable, scheduleText } from '../render/schedules';
import type { Session } from '../session';

interface Json {
  readonly json?: boolean;
}

/** The subcommands in the order of `schedule --help`. */
const COMMANDS = [
  createCommand,
  listCommand,
  describeCommand,
  triggerCommand,
  (session: Session) => pauseCommand(session, 'pause'),
  (session: Session) => pauseCommand(session, 'unpause'),
  backfillCommand,
  updateCommand,
  deleteCommand,
];

export function scheduleCommand(session: Session): Command {
  const command = new Command('schedule')
    .summary('batches at set times')
    .description(
      'Sends the follow-ups of a file again and again, by a Temporal Schedule. Each firing is a batch of its own, named ' +
        'after the schedule and the time: ID-2026-11-21T03:00:00Z.',
    );
  for (const addCommand of COMMANDS) command.addCommand(addCommand(session));
  return command;
}

async function handleOf(session: Session, id: string): Promise<ScheduleHandle> {
  return (await session.connect()).schedules.getHandle(id);
}

function createCommand(session: Session): Command {
  const command = new Command('create')
    .summary('send the follow-ups of a file at set times')
    .description(
      'Checks the whole input, and makes a schedule of it. Nothing is sent before it fires. If a schedule has this id, ' +
        'that is an error; use "schedule update" to change one.\n\n' +
        'The items are kept in the schedule, at most 1 MiB of them; the file is not read again. They have no request ids ' +
        'of their own, because each firing sends anew.',
    )
    .argument('<id>', 'your name for the schedule: letters, digits, -, ., _ and ~')
    .argument('<file>', 'JSON Lines or CSV, as for batch run; - for stdin');
  addScheduleFlags(command)
    .option('--paused', 'fire only when triggered, until it is unpaused')
    .option('--task-queue <name>', 'task queue of its batches (default: as FOLLOW_UP_TASK_QUEUE says)')
    .option('--json', 'print one JSON document: the schedule');
  return addLineFlags(command)
    .addHelpText(
      'after',
      `
A cron expression has 5 fields (minute, hour, day of month, month, day of week), 6 with a year, or 7 with seconds first.
A calendar has second, minute, hour (default 0), dayOfMonth, month, dayOfWeek and year (default any). Both work as in
Temporal: if day of month and day of week are given, both must match. A time that a change to summer time skips does not
fire on that day.

Examples:
  $ ${session.command('schedule', 'create', 'nightly', 'jobs.csv')} --cron "0 3 * * MON-FRI" --timezone Europe/Berlin
  $ ${session.command('schedule', 'create', 'rebase', 'jobs.jsonl')} --every 6h --offset 30m --tolerate 5% --pause-on-failure
  $ ${session.command('schedule', 'create', 'weekly', 'jobs.csv')} --calendar '{"dayOfWeek":"Fri","hour":"3"}' --prompt "Rebase on main."`,
    )
    .action(async (id: string, file: string, flags: ScheduleFlags & LineFlags & Json) => {
      const { output } = session;
      const options = newScheduleOf(flags);
      const items = await readItems(session, id, file, flags);
      const handle = await (await session.connect()).schedules.create(id, items, options);
      const schedule = await handle.describe();
      if (flags.json === true) output.json(documentOf(schedule));
      else output.result(id);
      output.note('created');
      const [next] = nextTimes(schedule);
      if (schedule.state.paused)
        output.note(`paused; ${session.command('schedule', 'unpause', id)} lets it fire`);
      else output.note(next === undefined ? 'it has no further time to fire' : `next        ${next}`);
    });
}

function listCommand(session: Session): Command {
  return new Command('list')
    .summary('schedules of follow-ups in the namespace')
    .description(
      'Lists the schedules of follow-ups with their next and last firing. The list is eventually consistent: a recent ' +
        'change may not be shown yet.',
    )
    .option('--json', 'print one JSON array')
    .action(async (flags: Json) => {
      const { output } = session;
      const found: ScheduleSummary[] = [];
      for await (const schedule of (await session.connect()).schedules.list()) found.push(schedule);
      found.sort((one, other) => (one.scheduleId < other.scheduleId ? -1 : 1));
      if (flags.json === true) {
        output.json(found.map(({ scheduleId, spec, state, info }) => ({ scheduleId, spec, state, info })));
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

function describeCommand(session: Session): Command {
  return new Command('describe')
    .summary('a schedule: when it fires, what it sends, its last batches')
    .description(
      'Prints when a schedule fires next, what it sends, and its last batches; "batch status" shows how one ended. ' +
        '--json prints all of its settings, as Temporal describes them.',
    )
    .argument('<id>', 'of the schedule')
    .option('--json', 'print one JSON document')
    .action(async (id: string, flags: Json) => {
      const schedule = await (await handleOf(session, id)).describe();
      if (flags.json === true) session.output.json(documentOf(schedule));
      else session.output.result(scheduleText(schedule));
    });
}

function triggerCommand(session: Session): Command {
  return new Command('trigger')
    .summary('let a schedule fire now')
    .description('Lets a schedule fire now, a paused one too, and prints the id of the batch that it starts.')
    .argument('<id>', 'of the schedule')
    .addOption(overlapFlag("if a batch runs (default: the schedule's own policy)"))
    .option('--json', 'print one JSON document: { scheduleId, outcome, batchId }')
    .action(async (id: string, flags: Json & { overlap?: ScheduleOverlapPolicy }) => {
      const { output } = session;
      const triggered = await (await handleOf(session, id)).trigger(flags.overlap);
      const { outcome, batchId } = triggered;
      if (flags.json === true) output.json({ scheduleId: id, ...triggered });
      else if (batchId !== null) output.result(batchId);
      if (batchId !== null) output.note(`watch it    ${session.command('batch', 'watch', batchId)}`);
      else
        output.note(
          outcome === 'skipped'
            ? 'skipped: a batch of this schedule runs; --overlap can change that'
            : 'requested, but no batch was started yet: it may wait for one that runs',
        );
    });
}

function pauseCommand(session: Session, verb: 'pause' | 'unpause'): Command {
  const paused = verb === 'pause';
  return new Command(verb)
    .summary(paused ? 'stop a schedule from firing until it is unpaused' : 'let a paused schedule fire again')
    .description(
      paused
        ? 'Pauses a schedule: it fires only when triggered. A batch that runs continues.'
        : 'Lets a schedule fire again from its next time on. Times that have passed are not made up for.',
    )
    .argument('<id>', 'of the schedule')
    .option('--note <text>', 'why, shown in lists and in the Web UI', `${verb}d by the starter`)
    .option('--json', 'print one JSON document: { scheduleId, paused, note }')
    .action(async (id: string, { note, json }: Json & { note: string }) => {
      await (await handleOf(session, id))[verb](note);
      if (json === true) session.output.json({ scheduleId: id, paused, note });
      session.output.note(`${verb}d`);
    });
}

function backfillCommand(session: Session): Command {
  return new Command('backfill')
    .summary('let a schedule fire for times that have passed')
    .description(
      'Fires now for each of its times in a range, both ends included. A time whose batch exists is left out, as long as ' +
        'the namespace keeps that batch.',
    )
    .argument('<id>', 'of the schedule')
    .requiredOption('--from <time>', 'ISO 8601 with an offset, as 2026-11-21T03:00:00Z')
    .requiredOption('--to <time>', 'likewise')
    .addOption(
      overlapFlag('if a batch runs (default: buffer-all, one after the other)').default('BUFFER_ALL'),
    )
    .option('--json', 'print one JSON document: { scheduleId, from, to, overlap }')
    .action(
      async (id: string, flags: Json & { from: string; to: string; overlap: ScheduleOverlapPolicy }) => {
        const problems: string[] = [];
        const start = timeOf('--from', flags.from, problems) ?? new Date(0);
        const end = timeOf('--to', flags.to, problems) ?? start;
        if (start > end) problems.push('--to: must not be before --from');
        if (problems.length > 0) throw new UsageError(problems);
        const { overlap } = flags;
        await (await handleOf(session, id)).backfill({ start, end, overlap });
        if (flags.json === true) session.output.json({ scheduleId: id, from: start, to: end, overlap });
        session.output.note(`requested; its batches: ${session.command('schedule', 'describe', id)}`);
      },
    );
}

function updateCommand(session: Session): Command {
  const command = new Command('update')
    .summary('change when a schedule fires, or what it sends')
    .description(
      'Changes what is given and leaves the rest. Timing (--cron, --calendar, --every with --offset) is replaced as a ' +
        'whole. If a file is given, so are the items with their options. A batch that runs continues as it was.',
    )
    .argument('<id>', 'of the schedule')
    .argument('[file]', 'JSON Lines or CSV, as for batch run; - for stdin (default: keep the items)');
  addScheduleFlags(command)
    .option('--no-start-at', 'remove the start')
    .option('--no-end-at', 'remove the end')
    .option('--no-pause-on-failure', 'continue when a batch fails')
    .option('--no-tolerate', 'tolerate any number of failures')
    .option('--task-queue <name>', 'task queue of its batches (default: as before)')
    .option('--json', 'print one JSON document: the schedule');
  return addLineFlags(command)
    .addHelpText(
      'after',
      `
Examples:
  $ ${session.command('schedule', 'update', 'nightly')} --cron "30 2 * * *" --timezone Europe/Berlin
  $ ${session.command('schedule', 'update', 'nightly', 'jobs.csv', '--prompt')} "Fix the links."`,
    )
    .action(async (id: string, file: string | undefined, flags: ScheduleFlags & LineFlags & Json) => {
      const change = scheduleOf(flags);
      if (file === undefined) refuseLineFlags(flags);
      const items = file === undefined ? {} : { items: await readItems(session, id, file, flags) };
      const handle = await handleOf(session, id);
      await handle.update({ ...change, ...items });
      if (flags.json === true) session.output.json(documentOf(await handle.describe()));
      session.output.note('updated');
    });
}

function deleteCommand(session: Session): Command {
  return new Command('delete')
    .summary('remove a schedule')
    .description('Removes a schedule. A batch that runs continues; "batch cancel" ends it.')
    .argument('<id>', 'of the schedule')
    .option('--json', 'print one JSON document: { scheduleId, deleted, running }')
    .action(async (id: string, flags: Json) => {
      const handle = await handleOf(session, id);
      const running = batchIds((await handle.describe()).info.runningActions);
      await handle.delete();
      if (flags.json === true) session.output.json({ scheduleId: id, deleted: true, running });
      session.output.note('deleted');
      for (const batchId of running) session.output.note(`still runs  ${batchId}`);
    });
}
