import { Command } from 'commander';
import { checkSchedule, type NewScheduleOptions } from '../../client';
import { readBatch } from '../flags/batch-input';
import { addLineFlags, invalid, type LineFlags } from '../flags/request-flags';
import {
  addScheduleFlags,
  addUpdateFlags,
  overlapFlag,
  overlapOf,
  refuseLineFlags,
  type ScheduleFlags,
  scheduleOf,
} from '../flags/schedule-flags';
import type { Session } from '../session';

type ItemFlags = ScheduleFlags & LineFlags;

export function scheduleCommand(session: Session): Command {
  const schedules = new Command('schedule').description(
    'Sends the follow-ups of a file at set times, by a Temporal Schedule. Each firing is a batch of its own, named ' +
      'after the schedule and the time: ID-2026-11-21T03:00:00Z. To list, describe, pause, backfill and delete ' +
      'schedules, use "temporal schedule".',
  );
  const verb = (name: string, description: string, json: string): Command =>
    schedules
      .command(name)
      .argument('<id>', 'of the schedule')
      .option('--json', `print one JSON document: ${json}`)
      .description(description);
  addCreateCommand(schedules, session);
  verb(
    'trigger',
    'Lets a schedule fire now, a paused one too. Prints the id of the batch that it starts.',
    '{ scheduleId, outcome, batchId }',
  )
    .addOption(overlapFlag("if a batch runs (default: the schedule's own policy)"))
    .action(async (id: string, { overlap }: { overlap?: string }) => {
      const { schedules: client } = await session.connect();
      const { outcome, batchId } = await client.getHandle(id).trigger(overlapOf(overlap));
      session.print({ scheduleId: id, outcome, batchId }, batchId ?? '');
      if (batchId !== null) session.note(`watch it    ${session.command('batch', 'watch', batchId)}`);
      else if (outcome === 'skipped')
        session.note('skipped: a batch of this schedule runs; --overlap can change that');
      else session.note('requested, but no batch was started yet: it may wait for one that runs');
    });
  const update = verb(
    'update',
    'Changes when a schedule fires, or what it sends. What is not given stays. Timing (--cron, --calendar, --every with ' +
      '--offset) is replaced as a whole. If a file is given, so are the items with their options. A batch that runs ' +
      'continues as it was.',
    '{ scheduleId, items }',
  ).argument('[file]', 'JSON Lines or CSV, as for batch run; - for stdin (default: keep the items)');
  addUpdateFlags(update)
    .addHelpText(
      'after',
      `
Examples:
  $ ${session.command('schedule', 'update', 'nightly')} --cron "30 2 * * *" --timezone Europe/Berlin
  $ ${session.command('schedule', 'update', 'nightly', 'jobs.csv', '--prompt')} "Fix the links."`,
    )
    .action(async (id: string, file: string | undefined, flags: ItemFlags) => {
      const change = scheduleOf(flags);
      if (file === undefined) refuseLineFlags(flags);
      const items = file === undefined ? undefined : await readItems(session, id, file, flags);
      const handle = (await session.connect()).schedules.getHandle(id);
      await handle.update({ ...change, ...(items && { items }) });
      session.print({ scheduleId: id, items: items?.items.length ?? null }, id);
      session.note('updated');
    });
  return schedules;
}

function addCreateCommand(schedules: Command, session: Session): void {
  const command = schedules
    .command('create')
    .description(
      'Makes a schedule of the items of a file. Nothing is sent before it fires. If a schedule has this id, that is an ' +
        'error; use "schedule update" to change one.\n\n' +
        'The items are kept in the schedule, at most 1 MiB of them; the file is not read again. They have no request ids, ' +
        'because each firing sends anew.',
    )
    .argument('<id>', 'your name for the schedule: letters, digits, -, ., _ and ~')
    .argument('<file>', 'JSON Lines or CSV, as for batch run; - for stdin');
  addScheduleFlags(command)
    .option('--paused', 'do not fire until "temporal schedule toggle --unpause"')
    .option('--json', 'print one JSON document: { scheduleId, items, next }');
  addLineFlags(command)
    .addHelpText(
      'after',
      `
Examples:
  $ ${session.command('schedule', 'create', 'nightly', 'jobs.csv')} --cron "0 3 * * MON-FRI" --timezone Europe/Berlin
  $ ${session.command('schedule', 'create', 'rebase', 'jobs.jsonl')} --every 6h --offset 30m --tolerate 5% --pause-on-failure
  $ ${session.command('schedule', 'create', 'weekly', 'jobs.csv')} --calendar '{"dayOfWeek":"Fri","hour":"3"}' --prompt "Rebase on main."`,
    )
    .action(async (id: string, file: string, flags: ItemFlags) => {
      if ((flags.cron ?? flags.calendar ?? flags.every) === undefined)
        throw invalid('spec', 'is missing; give --cron, --calendar or --every');
      // Without the flags of an update, nothing is removed.
      const options = scheduleOf(flags) as NewScheduleOptions;
      const batch = await readItems(session, id, file, flags);
      const handle = await (await session.connect()).schedules.create(id, batch, options);
      const { state, info } = await handle.describe();
      // Without milliseconds, because schedules fire by the second. The server names times of a paused schedule too.
      const next = state.paused ? null : (info.nextActionTimes[0]?.toISOString().slice(0, 19) ?? null);
      session.print({ scheduleId: id, items: batch.items.length, next: next && `${next}Z` }, id);
      const none = state.paused
        ? `temporal schedule toggle --unpause --schedule-id ${id} lets it fire`
        : 'none: its times have passed';
      session.note(`created\nnext        ${next === null ? none : `${next}Z`}`);
    });
}

/** The items of a schedule's file; what is wrong is named by its line. */
function readItems(session: Session, id: string, file: string, flags: ItemFlags) {
  return readBatch(session.stdin, file, flags, (requests) => checkSchedule(id, requests));
}
