import { ScheduleOverlapPolicy } from '@temporalio/client';
import { Command, InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import { checkSchedule, type NewScheduleOptions, type RunOptions, type ScheduleHandle } from '../../client';
import { addRunFlags, readBatch } from '../flags/batch-input';
import { addLineFlags, durationOf, invalid, type LineFlags, requestOfFlags } from '../flags/request-flags';
import type { Session } from '../session';

const FILE_HELP = 'JSON Lines or CSV, as for batch run; - for stdin';

export function scheduleCommand(session: Session): Command {
  const schedules = new Command('schedule').description(
    'Sends the follow-ups of a file at set times, by a Temporal Schedule. Each firing is a batch of its own, named ' +
      'after the schedule and the time: ID-2026-11-21T03:00:00Z. To list, describe, pause, backfill and delete ' +
      'schedules, use "temporal schedule".',
  );
  const verb = (name: string, id: string, json: string, description: string): Command =>
    schedules
      .command(name)
      .argument('<id>', id)
      .option('--json', `print one JSON document: ${json}`)
      .description(description);
  const example = (verb: string, ...words: string[]) => `  $ ${session.command('schedule', verb, ...words)}`;
  const create = verb(
    'create',
    'your name for the schedule: letters, digits, -, ., _ and ~',
    '{ scheduleId, items, next }',
    'Makes a schedule of the items of a file. Nothing is sent before it fires. If a schedule has this id, that is an ' +
      'error; use "schedule update" to change one.\n\n' +
      'The items are kept in the schedule, at most 1 MiB of them; the file is not read again. They have no request ids, ' +
      'because each firing sends anew.',
  ).argument('<file>', FILE_HELP);
  addScheduleFlags(create)
    .addHelpText(
      'after',
      `
Examples:
${example('create', 'nightly', 'jobs.csv')} --cron "0 3 * * MON-FRI" --timezone Europe/Berlin
${example('create', 'rebase', 'jobs.jsonl')} --every 6h --offset 30m --tolerate 5% --pause-on-failure
${example('create', 'weekly', 'jobs.csv')} --calendar '{"dayOfWeek":"Fri","hour":"3"}' --prompt "Rebase on main."`,
    )
    .action(async (id: string, file: string, flags: ScheduleFlags) => {
      const { spec, ...options } = scheduleOf(flags);
      if (spec === undefined) throw noTiming();
      const batch = await readItems(session, id, file, flags);
      const handle = await (await session.connect()).schedules.create(id, batch, { spec, ...options });
      await tellNext(session, 'created', handle, batch.items.length);
    });
  verb(
    'trigger',
    'of the schedule',
    '{ scheduleId, outcome, batchId }',
    'Lets a schedule fire now, a paused one too. Prints the id of the batch that it starts.',
  )
    .addOption(overlapFlag("if a batch runs (default: the schedule's own policy)"))
    .action(async (id: string, { overlap }: Pick<ScheduleFlags, 'overlap'>) => {
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
    'of the schedule',
    '{ scheduleId, items, next }',
    'Changes when a schedule fires, or what it sends. What is not given stays. When it fires (--cron, --calendar, ' +
      '--every, and the flags of their times) is replaced as a whole. If a file is given, so are the items with their ' +
      'options and their task queue. A batch that runs continues as it was.',
  ).argument('[file]', `${FILE_HELP} (default: keep the items)`);
  addScheduleFlags(update)
    .addHelpText(
      'after',
      `
Examples:
${example('update', 'nightly')} --cron "30 2 * * *" --timezone Europe/Berlin
${example('update', 'nightly', 'jobs.csv', '--prompt')} "Fix the links."`,
    )
    .action(async (id: string, file: string | undefined, flags: ScheduleFlags) => {
      const change = scheduleOf(flags);
      if (file === undefined) refuseLineFlags(flags);
      // JSON leaves out what is not given.
      if (file === undefined && JSON.stringify(change) === NO_CHANGE)
        throw invalid('schedule update', 'no change given; give a flag of the schedule, or a file of items');
      const items = file === undefined ? undefined : await readItems(session, id, file, flags);
      const handle = (await session.connect()).schedules.getHandle(id);
      await handle.update({ ...change, items });
      await tellNext(session, 'updated', handle, items?.items.length ?? null);
    });
  return schedules;
}

/** Says what was done, and when the schedule fires next. @param items null where they stay */
async function tellNext(
  session: Session,
  done: string,
  handle: ScheduleHandle,
  items: number | null,
): Promise<void> {
  const { scheduleId } = handle;
  // What was done is told also where the server does not answer this.
  const { state, info } = (await handle.describe().catch(() => null)) ?? {};
  // Without milliseconds, because schedules fire by the second. The server names times of a paused schedule too.
  const time = state?.paused === false ? info?.nextActionTimes[0]?.toISOString().slice(0, 19) : undefined;
  const next = time === undefined ? null : `${time}Z`;
  session.print({ scheduleId, items, next }, scheduleId);
  const none = state?.paused
    ? `temporal schedule toggle --unpause --schedule-id ${scheduleId} lets it fire`
    : `none: ${state === undefined ? 'the server does not say when' : 'its times have passed'}`;
  session.note(`${done}\nnext        ${next ?? none}`);
}

/** The items of a schedule's file; what is wrong is named by its line. */
function readItems(session: Session, id: string, file: string, flags: LineFlags) {
  return readBatch(session.stdin, file, flags, (requests) => checkSchedule(id, requests));
}

/** Refuses flags that belong to items if no items are given. @throws InvalidRequestError */
function refuseLineFlags(flags: LineFlags): void {
  const { format, promptFile } = flags;
  const all = { ...requestOfFlags(flags), format, promptFile };
  const text = 'is missing, but flags of its items are given (--project, --prompt, --when-active, …)';
  if (Object.values(all).some((value) => value !== undefined)) throw invalid('FILE', text);
}

/** The flags that say when a schedule fires, and how its batches run. */
interface ScheduleFlags extends RunOptions, LineFlags {
  readonly cron?: string[];
  readonly calendar?: string[];
  readonly every?: number[];
  readonly offset?: number;
  readonly timezone?: string;
  readonly startAt?: Date;
  readonly endAt?: Date;
  readonly jitter?: number;
  readonly overlap?: string;
  readonly catchupWindow?: number;
  readonly pauseOnFailure?: boolean;
  readonly paused?: boolean;
  readonly note?: string;
}

/** Adds the flags. Cron expressions, time zones and ranges are checked by the server. */
function addScheduleFlags(command: Command): Command {
  const more = '; may be given several times';
  const calendar = 'fire at the times of a calendar in JSON, as the Temporal CLI takes it';
  const window = 'make up for a firing that is late by no more than this, for example after an outage';
  command
    .option('--cron <expression>', `fire at the times of a cron expression${more}`, several(String))
    .option('--calendar <json>', `${calendar}${more}`, several(cronOf))
    .option('--every <duration>', `fire at each multiple of this since 1970${more}`, several(durationOf))
    .option(
      '--offset <duration>',
      'fire later than the multiple of --every by this (default: 0s)',
      durationOf,
    )
    .option('--timezone <name>', 'time zone of --cron and --calendar, such as Europe/Berlin (default: UTC)')
    .option('--start-at <time>', `fire not before this time, ${TIME_HELP} (default: at once)`, timeOf)
    .option('--end-at <time>', `fire not after this time, ${TIME_HELP} (default: no end)`, timeOf)
    .option(
      '--jitter <duration>',
      'fire late by a random time up to this (default: less than 1s)',
      durationOf,
    )
    .addOption(overlapFlag('if the previous batch still runs (default: skip)'))
    .option('--catchup-window <duration>', `${window} (default: 10m)`, durationOf)
    .option('--pause-on-failure', 'pause the schedule when a batch fails, which it does beyond --tolerate')
    .option('--no-pause-on-failure', 'continue when a batch fails')
    .option('--paused', 'do not fire until "temporal schedule toggle --unpause"')
    .option('--note <text>', 'shown in lists and in the Web UI');
  return addLineFlags(addRunFlags(command));
}

function scheduleOf(flags: ScheduleFlags): Partial<NewScheduleOptions> {
  const { cron = [], calendar = [], every, offset, timezone, startAt, endAt, jitter } = flags;
  const { overlap, catchupWindow, pauseOnFailure, paused, note, concurrency, tolerate } = flags;
  if (offset !== undefined && every === undefined)
    throw invalid('--offset', 'belongs to an interval; give --every too');
  const cronExpressions = [...cron, ...calendar];
  const hasTimes = cronExpressions.length > 0 || every !== undefined;
  if (!hasTimes && [timezone, startAt, endAt, jitter].some((flag) => flag !== undefined)) throw noTiming();
  const intervals = every?.map((each) => ({ every: each, offset: offset ?? 0 }));
  const spec = { cronExpressions, intervals, timezone, jitter, startAt, endAt } as NewScheduleOptions['spec'];
  return {
    ...(hasTimes && { spec }),
    policies: { overlap: overlapOf(overlap), catchupWindow, pauseOnFailure },
    state: { paused, note },
    tolerate,
    concurrency,
  } as Partial<NewScheduleOptions>;
}

const NO_CHANGE = JSON.stringify(scheduleOf({}));

function noTiming() {
  return invalid('spec', 'is missing; give --cron, --calendar or --every');
}

function several<T>(read: (text: string) => T) {
  return (text: string, before: readonly T[] = []): T[] => [...before, read(text)];
}

/** Without an offset it would be another time on each machine. */
const TIME_HELP = 'ISO 8601 with an offset, as 2026-11-21T03:00:00Z';

/** With seconds, or without. */
const TIME = z.union([z.iso.datetime({ offset: true }), z.iso.datetime({ offset: true, precision: -1 })]);

function timeOf(text: string): Date {
  if (TIME.safeParse(text).success) return new Date(text);
  throw new InvalidArgumentError(`It must be ${TIME_HELP}.`);
}

function overlapOf(text: string | undefined): ScheduleOverlapPolicy | undefined {
  return text?.toUpperCase().replace('-', '_') as ScheduleOverlapPolicy | undefined;
}

function overlapFlag(help: string): Option {
  const policies = Object.keys(ScheduleOverlapPolicy).filter((policy) => policy !== 'UNSPECIFIED');
  return new Option('--overlap <policy>', help).choices(
    policies.map((policy) => policy.toLowerCase().replace('_', '-')),
  );
}

const PART = 'must be a text without spaces, such as "1-5" or "1,15"';
const part = z.string(PART).regex(/^[^\s#]+$/, PART);
const [zero, any] = [part.default('0'), part.default('*')];

/** The fields of a calendar in the order of a cron expression of seven fields, and what each is if it is left out. */
const CALENDAR = z.strictObject({
  second: zero,
  minute: zero,
  hour: zero,
  dayOfMonth: any,
  month: any,
  dayOfWeek: any,
  year: any,
  comment: z.string().default(''),
});

/** The cron expression of a calendar, which is how the Temporal CLI sends one too. */
function cronOf(text: string): string {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new InvalidArgumentError('It must be JSON, such as {"dayOfWeek":"Fri","hour":"3"}.');
  }
  const { data, error } = CALENDAR.safeParse(json);
  if (error) {
    const wrong = error.issues.map(({ path, message }) => [...path, message].join(': ')).join('; ');
    throw new InvalidArgumentError(`It must be a calendar as the Temporal CLI takes it (${wrong}).`);
  }
  const { comment, ...fields } = data;
  return [...Object.values(fields), `# ${comment}`].join(' ');
}
