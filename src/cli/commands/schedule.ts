import { Command } from 'commander';
import { type ListedSchedule, type Overlap, type ScheduleHandle, type Triggered } from '../../client';
import { OVERLAPS } from '../../client/schedules/settings';
import { scheduleTable, scheduleText } from '../render/schedules';
import { addLineFlags, type LineFlags } from '../flags/request-flags';
import {
  addScheduleFlags,
  readItems,
  refuseLineFlags,
  type ScheduleFlags,
  scheduleSpecOf,
} from '../flags/schedule-flags';
import type { Session } from '../session';
import { columns } from '../render/text';

interface Json {
  readonly json?: boolean;
}

/** The subcommands in the order of `schedule --help`. */
const COMMANDS = [
  createCommand,
  listCommand,
  describeCommand,
  triggerCommand,
  pauseCommand,
  unpauseCommand,
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
      'Checks the whole input, and makes a schedule of it. Nothing is sent before it fires. The same command again leaves ' +
        'the schedule as it is. A different schedule of the same id is an error; use "schedule update" to change one.\n\n' +
        'The items are kept in the schedule, at most 1 MiB of them; the file is not read again. They have no request ids ' +
        'of their own, because each firing sends anew.',
    )
    .argument('<id>', 'your name for the schedule: letters, digits, -, ., _ and ~')
    .argument('<file>', 'JSON Lines or CSV, as for batch run; - for stdin');
  addScheduleFlags(command)
    .option('--paused', 'fire only when triggered, until it is unpaused')
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
    .action(
      async (id: string, file: string, flags: ScheduleFlags & LineFlags & Json & { paused?: boolean }) => {
        const { output } = session;
        const spec = scheduleSpecOf(flags);
        const batch = await readItems(session, id, file, flags);
        const { schedules } = await session.connect();
        const handle = await schedules.create(id, batch, {
          ...spec,
          ...(flags.paused === undefined ? {} : { paused: flags.paused }),
        });
        const schedule = await handle.describe();
        if (flags.json === true) output.json({ made: handle.made, ...schedule });
        else output.result(id);
        output.note(handle.made === 'created' ? 'created' : 'exists already, unchanged');
        const [next] = schedule.next;
        if (schedule.paused)
          output.note(`paused; ${session.command('schedule', 'unpause', id)} lets it fire`);
        else output.note(next === undefined ? 'it has no further time to fire' : `next        ${next}`);
      },
    );
}

function listCommand(session: Session): Command {
  return new Command('list')
    .summary('schedules of the namespace: next firings, last ends')
    .description(
      'Lists the schedules of follow-ups with their next firing, and the end of the last one. The list is eventually ' +
        'consistent: a recent change may not be shown yet.',
    )
    .option('--json', 'print one JSON array')
    .action(async (flags: Json) => {
      const { output } = session;
      const found: ListedSchedule[] = [];
      for await (const schedule of (await session.connect()).schedules.list()) found.push(schedule);
      found.sort((one, other) => (one.scheduleId < other.scheduleId ? -1 : 1));
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

function describeCommand(session: Session): Command {
  return new Command('describe')
    .summary('a schedule: its settings, next firings, last ends')
    .description(
      'Prints what a schedule sends and when, when it fires next, and how its last ten firings ended. "batch status" shows ' +
        'more of one firing.',
    )
    .argument('<id>', 'of the schedule')
    .option('--json', 'print one JSON document')
    .action(async (id: string, flags: Json) => {
      const schedule = await (await handleOf(session, id)).describe();
      if (flags.json === true) session.output.json(schedule);
      else session.output.result(scheduleText(schedule));
    });
}

function triggerCommand(session: Session): Command {
  return new Command('trigger')
    .summary('let a schedule fire now')
    .description('Lets a schedule fire now, a paused one too, and prints the id of the batch that it starts.')
    .argument('<id>', 'of the schedule')
    .option('--overlap <policy>', `if a batch runs: ${OVERLAPS.join(', ')} (default: the schedule's own)`)
    .option('--json', 'print one JSON document: { scheduleId, outcome, batchId }')
    .action(async (id: string, flags: Json & { overlap?: Overlap }) => {
      const { output } = session;
      const { overlap } = flags;
      const handle = await handleOf(session, id);
      const triggered = await handle.trigger(overlap === undefined ? {} : { overlap });
      const { outcome, batchId } = triggered;
      if (flags.json === true) output.json({ scheduleId: id, ...triggered });
      else if (batchId !== null) output.result(batchId);
      output.note(
        batchId === null ? NOT_STARTED[outcome] : `watch it    ${session.command('batch', 'watch', batchId)}`,
      );
    });
}

const NOT_STARTED: Readonly<Record<Triggered['outcome'], string>> = {
  started: '',
  skipped: 'skipped: a batch of this schedule runs; --overlap can change that',
  waiting:
    'requested, but nothing was started yet: it may wait for a batch that runs. A schedule fires at most once a second',
};

function pauseCommand(session: Session): Command {
  return new Command('pause')
    .summary('stop a schedule from firing until it is unpaused')
    .description('Pauses a schedule: it fires only when triggered. A batch that runs goes on.')
    .argument('<id>', 'of the schedule')
    .option('--note <text>', 'why, shown in lists and in the Web UI', 'paused by the starter')
    .option('--json', 'print one JSON document: { scheduleId, paused, note }')
    .action(async (id: string, { note, json }: Json & { note: string }) => {
      await (await handleOf(session, id)).pause(note);
      if (json === true) session.output.json({ scheduleId: id, paused: true, note });
      session.output.note('paused');
    });
}

function unpauseCommand(session: Session): Command {
  return new Command('unpause')
    .summary('let a paused schedule fire again')
    .description(
      'Lets a schedule fire again from its next time on. Times that have passed are not made up for.',
    )
    .argument('<id>', 'of the schedule')
    .option('--note <text>', 'why, shown in lists and in the Web UI', 'unpaused by the starter')
    .option('--json', 'print one JSON document: { scheduleId, paused, note }')
    .action(async (id: string, { note, json }: Json & { note: string }) => {
      await (await handleOf(session, id)).unpause(note);
      if (json === true) session.output.json({ scheduleId: id, paused: false, note });
      session.output.note('unpaused');
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
    .option(
      '--overlap <policy>',
      `if a batch runs: ${OVERLAPS.join(', ')} (default: buffer-all, one after the other)`,
    )
    .option('--json', 'print one JSON document: { scheduleId, times, overlap }')
    .action(async (id: string, flags: Json & { from: string; to: string; overlap?: Overlap }) => {
      const { output } = session;
      const { from, to, overlap } = flags;
      const handle = await handleOf(session, id);
      const filled = await handle.backfill({
        start: from,
        end: to,
        ...(overlap === undefined ? {} : { overlap }),
      });
      const { times } = filled;
      if (flags.json === true) output.json({ scheduleId: id, ...filled });
      else output.result(times.join('\n'));
      const some = times.length === 1 ? 'fires for this time' : `fires for these ${times.length} times`;
      output.note(`${some}, overlap ${filled.overlap}: ${session.command('schedule', 'describe', id)}`);
    });
}

function updateCommand(session: Session): Command {
  const command = new Command('update')
    .summary('change when a schedule fires, or what it sends')
    .description(
      'Changes what is given and leaves the rest. Timing (--cron, --calendar, --every with --offset) is replaced as a ' +
        'whole. If a file is given, so are the items with their options. A batch that runs goes on as it was.',
    )
    .argument('<id>', 'of the schedule')
    .argument('[file]', 'JSON Lines or CSV, as for batch run; - for stdin (default: keep the items)');
  addScheduleFlags(command)
    .option('--no-start-at', 'remove the start')
    .option('--no-end-at', 'remove the end')
    .option('--no-pause-on-failure', 'go on when a batch fails')
    .option('--no-tolerate', 'tolerate any number of failures')
    .option('--task-queue <name>', 'task queue of its batches (default: as before)')
    .option('--json', 'print one JSON document: { scheduleId, changed }');
  return addLineFlags(command)
    .addHelpText(
      'after',
      `
Examples:
  $ ${session.command('schedule', 'update', 'nightly')} --cron "30 2 * * *" --timezone Europe/Berlin
  $ ${session.command('schedule', 'update', 'nightly', 'jobs.csv', '--prompt')} "Fix the links."`,
    )
    .action(async (id: string, file: string | undefined, flags: ScheduleFlags & LineFlags & Json) => {
      const { output } = session;
      const spec = scheduleSpecOf(flags);
      if (file === undefined) refuseLineFlags(flags);
      const items = file === undefined ? {} : { items: await readItems(session, id, file, flags) };
      const changed = await (await handleOf(session, id)).update({ ...spec, ...items });
      if (flags.json === true) output.json({ scheduleId: id, changed });
      else if (changed.length > 0) {
        output.result(columns(changed.map(({ what, before, after }) => [what, `${before} → ${after}`])));
      }
      output.note(changed.length > 0 ? 'updated' : 'unchanged');
    });
}

function deleteCommand(session: Session): Command {
  return new Command('delete')
    .summary('remove a schedule')
    .description('Removes a schedule. A batch that runs goes on; "batch cancel" ends it.')
    .argument('<id>', 'of the schedule')
    .option('--json', 'print one JSON document: { scheduleId, deleted, running }')
    .action(async (id: string, flags: Json) => {
      const { output } = session;
      const handle = await handleOf(session, id);
      const { running } = await handle.describe();
      await handle.delete();
      if (flags.json === true) output.json({ scheduleId: id, deleted: true, running });
      output.note('deleted');
      for (const batchId of running) output.note(`still runs  ${batchId}`);
    });
}
