import type { ScheduleDescription, ScheduleSummary } from '@temporalio/client';
import { Command } from 'commander';
import { batchInputOf, type NewScheduleOptions } from '../../client';
import { batchIdOf } from '../../core/ids';
import { readBatch } from '../flags/batch-input';
import { addLineFlags, invalid, type LineFlags } from '../flags/request-flags';
import {
  addScheduleFlags,
  addUpdateFlags,
  overlapFlag,
  overlapOf,
  overlapText,
  refuseLineFlags,
  type ScheduleFlags,
  scheduleOf,
  TIME_HELP,
  timeOf,
} from '../flags/schedule-flags';
import { known } from '../render/follow-up';
import { columns, table } from '../render/text';
import type { Session } from '../session';

type ItemFlags = ScheduleFlags & LineFlags;

export function scheduleCommand(session: Session): Command {
  const schedules = new Command('schedule').description(
    'Sends the follow-ups of a file at set times, by a Temporal Schedule. Each firing is a batch of its own, named ' +
      'after the schedule and the time: ID-2026-11-21T03:00:00Z.',
  );
  const verb = (name: string, description: string, json: string): Command =>
    schedules
      .command(name)
      .argument('<id>', 'of the schedule')
      .option('--json', `print one JSON document: ${json}`)
      .description(description);
  const handleOf = async (id: string) => (await session.connect()).schedules.getHandle(id);
  addCreateCommand(schedules, session);
  addListCommand(schedules, session);
  verb(
    'describe',
    'Shows when a schedule fires, what it sends, and its last batches. "batch status" shows how one ended.',
    'the schedule, as Temporal describes it',
  ).action(async (id: string) => {
    const schedule = await (await handleOf(id)).describe();
    session.print(documentOf(schedule), scheduleText(schedule));
  });
  verb(
    'trigger',
    'Lets a schedule fire now, a paused one too. Prints the id of the batch that it starts.',
    '{ scheduleId, outcome, batchId }',
  )
    .addOption(overlapFlag("if a batch runs (default: the schedule's own policy)"))
    .action(async (id: string, { overlap }: { overlap?: string }) => {
      const { outcome, batchId } = await (await handleOf(id)).trigger(overlapOf(overlap));
      session.print({ scheduleId: id, outcome, batchId }, batchId ?? '');
      if (batchId !== null) session.note(`watch it    ${session.command('batch', 'watch', batchId)}`);
      else if (outcome === 'skipped')
        session.note('skipped: a batch of this schedule runs; --overlap can change that');
      else session.note('requested, but no batch was started yet: it may wait for one that runs');
    });
  for (const [name, description] of [
    ['pause', 'Stops a schedule from firing, unless it is triggered; a batch that runs continues.'],
    ['unpause', 'Lets a schedule fire again, from its next time on.'],
  ] as const)
    verb(name, description, '{ scheduleId, paused, note }')
      .option('--note <text>', 'why, shown in lists and in the Web UI', `${name}d by the starter`)
      .action(async (id: string, { note }: { note: string }) => {
        await (await handleOf(id))[name](note);
        session.print({ scheduleId: id, paused: name === 'pause', note });
        session.note(`${name}d`);
      });
  verb(
    'backfill',
    'Lets a schedule fire for times that have passed. Fires now for each of its times in a range, both ends included. A ' +
      'time whose batch exists is left out, as long as the namespace keeps that batch.',
    '{ scheduleId, from, to, overlap }',
  )
    .requiredOption('--from <time>', TIME_HELP, timeOf)
    .requiredOption('--to <time>', 'likewise', timeOf)
    .addOption(overlapFlag('if a batch runs').default('buffer-all', 'buffer-all, one after the other'))
    .action(async (id: string, { from, to, overlap }: { from: Date; to: Date; overlap: string }) => {
      if (from > to) throw invalid('--to', 'must not be before --from');
      await (await handleOf(id)).backfill({ start: from, end: to, overlap: overlapOf(overlap) });
      session.print({ scheduleId: id, from, to, overlap });
      session.note(`requested; its batches: ${session.command('schedule', 'describe', id)}`);
    });
  const update = verb(
    'update',
    'Changes when a schedule fires, or what it sends. What is not given stays. Timing (--cron, --calendar, --every with ' +
      '--offset) is replaced as a whole. If a file is given, so are the items with their options. A batch that runs ' +
      'continues as it was.',
    'the schedule',
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
      const items = file === undefined ? {} : { items: await readBatch(session.stdin, file, flags) };
      const handle = await handleOf(id);
      await handle.update({ ...change, ...items });
      if (session.isJson) session.print(documentOf(await handle.describe()));
      session.note('updated');
    });
  verb(
    'delete',
    'Removes a schedule; a batch that runs continues, and "batch cancel" ends it.',
    '{ scheduleId, deleted, running }',
  ).action(async (id: string) => {
    const handle = await handleOf(id);
    const running = runningBatches(await handle.describe());
    await handle.delete();
    session.print({ scheduleId: id, deleted: true, running });
    session.note(['deleted', ...running.map((batchId) => `still runs  ${batchId}`)].join('\n'));
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
    .option('--paused', 'do not fire until "schedule unpause"')
    .option('--json', 'print one JSON document: the schedule');
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
      const items = await readBatch(session.stdin, file, flags);
      const handle = await (await session.connect()).schedules.create(id, items, options);
      const schedule = await handle.describe();
      session.print(documentOf(schedule), id);
      const next = schedule.state.paused
        ? `${session.command('schedule', 'unpause', id)} lets it fire`
        : nextTimes(schedule)[0];
      session.note(`created\nnext        ${next ?? 'none: its times have passed'}`);
    });
}

function addListCommand(schedules: Command, session: Session): void {
  schedules
    .command('list')
    .description(
      'Lists the schedules of the namespace that send follow-ups. The list is eventually consistent.',
    )
    .option('--json', 'print one JSON array')
    .action(async () => {
      const found: ScheduleSummary[] = [];
      for await (const schedule of (await session.connect()).schedules.list()) found.push(schedule);
      found.sort((one, other) => (one.scheduleId < other.scheduleId ? -1 : 1));
      const documents = found.map(({ scheduleId, spec, state, info }) => ({ scheduleId, spec, state, info }));
      const rows = found.map((schedule) => [
        schedule.scheduleId,
        schedule.state.paused ? 'paused' : 'active',
        nextTimes(schedule)[0] ?? '-',
        recentBatches(schedule)[0] ?? '-',
      ]);
      session.print(documents, table(['SCHEDULE', 'STATE', 'NEXT', 'LAST BATCH'], rows));
      session.note(`${found.length} found; eventually consistent`);
    });
}

/** Temporal's own description; of the items, which may be many, only how many there are. */
function documentOf({ scheduleId, spec, policies, state, info, action }: ScheduleDescription) {
  const { items = [], concurrency, tolerate } = batchInputOf(action);
  const batch = { items: items.length, concurrency, tolerate, taskQueue: action.taskQueue };
  return { scheduleId, spec, policies, state, info, batch };
}

function scheduleText(schedule: ScheduleDescription): string {
  const { scheduleId, spec, state, policies, info, batch } = documentOf(schedule);
  const { numActionsTaken, numActionsSkippedOverlap, numActionsMissedCatchupWindow } = info;
  const counts = `${numActionsTaken} started, ${numActionsSkippedOverlap} skipped, ${numActionsMissedCatchupWindow} missed`;
  return columns([
    ['schedule', scheduleId],
    ['state', state.paused ? 'paused' : 'active'],
    ...known('note', state.note),
    ['next', nextTimes(schedule).slice(0, 3).join(', ') || 'none'],
    // eslint-disable-next-line @typescript-eslint/prefer-nullish-coalescing -- the server has an empty text for UTC
    ['timezone', spec.timezone || 'UTC'],
    ['overlap', overlapText(policies.overlap ?? 'SKIP')],
    ['items', String(batch.items)],
    ['task queue', batch.taskQueue],
    ['fired', counts],
    ['running', runningBatches(schedule).join(', ') || 'none'],
    ...recentBatches(schedule).map((batchId, index) => [index === 0 ? 'batches' : '', batchId] as const),
  ]);
}

function runningBatches({ info }: ScheduleDescription): string[] {
  return info.runningActions.map(({ workflow }) => batchIdOf(workflow.workflowId));
}

/** The latest first. */
function recentBatches({ info }: Pick<ScheduleSummary, 'info'>): string[] {
  return info.recentActions.map(({ action }) => batchIdOf(action.workflow.workflowId)).reverse();
}

/** Without milliseconds, because schedules fire by the second. The server names times of a paused schedule too. */
function nextTimes({ state, info }: Pick<ScheduleSummary, 'state' | 'info'>): string[] {
  return state.paused ? [] : info.nextActionTimes.map((at) => `${at.toISOString().slice(0, 19)}Z`);
}
