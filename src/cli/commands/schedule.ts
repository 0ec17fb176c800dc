import { ScheduleOverlapPolicy } from '@temporalio/client';
import { Command, InvalidArgumentError, Option } from 'commander';
import {
  checkSchedule,
  type CreateScheduleOptions,
  type RunOptions,
  type ScheduleHandle,
} from '../../entries/client';
import { invalidFieldError } from '../../client/errors';
import { isRecord } from '../../contract/checks';
import { addFileFlags, addRunFlags, type FileFlags, readBatchFile } from '../flags/batch-input';
import { parseDurationFlag, requestFromFlags } from '../flags/request-flags';
import type { Session } from '../session';
import { MAY_TAKE_EFFECT } from '../wait';

const FILE_HELP = 'JSON Lines or CSV, as for "batch run"; - reads stdin';

export function scheduleCommand(session: Session): Command {
  const schedules = new Command('schedule').description(
    'Sends the follow-ups of a file at set times, using a Temporal Schedule. Each firing starts a batch, whose ID is the ' +
      'schedule ID and the time, such as nightly-2026-11-21T03:00:00Z. To list, describe, trigger, pause, backfill or ' +
      'delete schedules, use "temporal schedule".',
  );
  const addSubcommand = (name: string, description: string): Command =>
    schedules
      .command(name)
      .argument('<id>', 'the ID of the schedule')
      .option('--json', 'print one JSON document')
      .description(description);
  const create = addSubcommand(
    'create',
    'Creates a schedule from the items of a file. The schedule stores the items: at most 1 MiB, and without request IDs.',
  ).argument('<file>', FILE_HELP);
  const example = session.command('schedule', 'create', 'nightly', 'jobs.csv', '--max-failures', '5%');
  addScheduleFlags(create, (value) => value)
    .addHelpText('after', `\nExample:\n  $ ${example} --cron "0 3 * * MON-FRI" --timezone Europe/Berlin`)
    .action(async (id: string, file: string, flags: ScheduleFlags) => {
      const { spec, ...options } = scheduleFromFlags(flags);
      if (spec === undefined) throw missingTimingError();
      const { allowDuplicates } = flags;
      const { signal } = session;
      const items = await readItems(session, id, file, flags);
      session.continuation = MAY_TAKE_EFFECT;
      const { schedules } = await session.connect();
      const handle = await schedules.create(id, items, { spec, ...options, allowDuplicates, signal });
      await printNextFiring(session, 'created', handle, items.length);
    });
  const update = addSubcommand(
    'update',
    'Changes the times or the items of a schedule. --cron, --calendar and --every replace the whole timing, including ' +
      '--timezone and --offset. A file replaces all items. Other options that are not set keep their values. A running batch ' +
      'is not affected.',
  ).argument('[file]', `${FILE_HELP} (default: keep the items)`);
  addScheduleFlags(update, () => 'unchanged').action(
    async (id: string, file: string | undefined, flags: ScheduleFlags) => {
      const change = scheduleFromFlags(flags);
      // JSON.stringify omits undefined fields, so this text means that no field of the items is set.
      if (file === undefined && JSON.stringify([requestFromFlags(flags), flags.promptFile]) !== '[{},null]')
        throw invalidFieldError(
          'FILE',
          'is missing, but options of its items are set (--project, --prompt, …); add the file',
        );
      if (file === undefined && flags.allowDuplicates === true)
        throw invalidFieldError('FILE', 'is missing, but --allow-duplicates is set; add the file');
      if (file === undefined && Object.keys(flags).every((flag) => ['json', 'timeout'].includes(flag)))
        throw invalidFieldError(
          'schedule update',
          'no change is given; add an option of the schedule or a file of items',
        );
      const items = file === undefined ? undefined : await readItems(session, id, file, flags);
      session.continuation = MAY_TAKE_EFFECT;
      const handle = (await session.connect()).schedules.getHandle(id);
      const { allowDuplicates } = flags;
      await handle.update({ ...change, items, allowDuplicates }, { signal: session.signal });
      await printNextFiring(session, 'updated', handle, items?.length ?? null);
    },
  );
  return schedules;
}

/** @param items the number of items, or null if the items are not changed */
async function printNextFiring(
  session: Session,
  action: string,
  handle: ScheduleHandle,
  items: number | null,
) {
  const { scheduleId } = handle;
  // The change is reported even if this call fails. The Temporal server returns the times of a paused schedule too.
  const { state, info } = (await handle.describe().catch(() => null)) ?? {};
  const time = state?.paused === false ? info?.nextActionTimes[0] : undefined;
  const next = time ? `${time.toISOString().slice(0, 19)}Z` : null;
  session.print({ scheduleId, items, next }, scheduleId);
  const none = `none known; for details, run temporal schedule describe --schedule-id ${scheduleId}`;
  session.printStatus(`${action}\nnext        ${next ?? none}`);
}

function readItems(session: Session, id: string, file: string, flags: ScheduleFlags) {
  const { allowDuplicates } = flags;
  return readBatchFile(session.stdin, file, flags, (requests) =>
    checkSchedule(id, requests, { allowDuplicates }),
  );
}

interface ScheduleFlags extends RunOptions, FileFlags {
  readonly cron?: string[];
  readonly calendar?: string[];
  readonly every?: number[];
  readonly overlap?: string;
}

/**
 * Adds the flags of a schedule. The Temporal server checks cron expressions, time zones and ranges.
 *
 * @param defaultOf returns the text after `default:` in the help. Its argument is the default of a new schedule.
 */
function addScheduleFlags(command: Command, defaultOf: (value: string) => string): Command {
  command
    .option(
      '--cron <expression>',
      'fire at the times of this cron expression; can be repeated',
      collectValues(String),
    )
    .option(
      '--calendar <json>',
      'fire at the times of this calendar, in JSON as for the Temporal CLI; can be repeated',
      collectValues(cronFromCalendar),
    )
    .option(
      '--every <duration>',
      'fire at every multiple of this duration since 1970; can be repeated',
      collectValues(parseDurationFlag),
    )
    .option(
      '--offset <duration>',
      'fire this much later than each multiple of --every (default: 0s)',
      parseDurationFlag,
    )
    .option('--timezone <name>', 'time zone of --cron and --calendar, such as Europe/Berlin (default: UTC)')
    .addOption(overlapFlag(defaultOf('skip')))
    .option(
      '--catchup-window <duration>',
      `skip a firing that is late by more than this (default: ${defaultOf('10m')})`,
      parseDurationFlag,
    )
    .option(
      '--pause-on-failure',
      'pause the schedule if a batch fails, for example because more items failed than --max-failures allows',
    )
    .option('--no-pause-on-failure', 'do not pause the schedule if a batch fails')
    .option('--paused', 'pause the schedule; "temporal schedule toggle --unpause" resumes it');
  return addFileFlags(addRunFlags(command, defaultOf));
}

function scheduleFromFlags(flags: ScheduleFlags): Partial<CreateScheduleOptions> {
  const { cron = [], calendar = [], every, offset, timezone } = flags;
  const { overlap, catchupWindow, pauseOnFailure, paused, concurrency, maxFailures } = flags;
  if (offset !== undefined && every === undefined)
    throw invalidFieldError('--offset', 'needs an interval; add --every');
  const cronExpressions = [...cron, ...calendar];
  const hasTimes = cronExpressions.length > 0 || every !== undefined;
  if (!hasTimes && timezone !== undefined) throw missingTimingError();
  const intervals = every?.map((each) => ({ every: each, offset: offset ?? 0 }));
  return {
    ...(hasTimes && { spec: { cronExpressions, intervals, timezone } as CreateScheduleOptions['spec'] }),
    policies: { overlap: parseOverlap(overlap), catchupWindow, pauseOnFailure } as object,
    state: { paused } as object,
    maxFailures,
    concurrency,
  };
}

function missingTimingError() {
  return invalidFieldError('spec', 'is missing; add --cron, --calendar or --every');
}

function collectValues<T>(read: (text: string) => T) {
  return (text: string, before: readonly T[] = []): T[] => [...before, read(text)];
}

function parseOverlap(text: string | undefined) {
  return text?.toUpperCase().replace('-', '_') as ScheduleOverlapPolicy | undefined;
}

function overlapFlag(defaultText: string): Option {
  const policies = Object.keys(ScheduleOverlapPolicy).filter((policy) => policy !== 'UNSPECIFIED');
  return new Option(
    '--overlap <policy>',
    `policy for a firing while the previous batch is running (default: ${defaultText})`,
  ).choices(policies.map((policy) => policy.toLowerCase().replace('_', '-')));
}

/** The fields of a calendar with their defaults, in the order of a cron expression with seven fields. */
const TIME = { second: '0', minute: '0', hour: '0' };
const CALENDAR = { ...TIME, dayOfMonth: '*', month: '*', dayOfWeek: '*', year: '*', comment: '' };

/** Converts a calendar into a cron expression, as the Temporal CLI does. */
function cronFromCalendar(text: string): string {
  try {
    const given: unknown = JSON.parse(text);
    const { comment, ...fields } = { ...CALENDAR, ...(given as Partial<typeof CALENDAR>) };
    const expression = Object.values(fields).join(' ');
    // An unknown field would be an eighth field of the expression.
    if (isRecord(given) && /^[^\s#]+( [^\s#]+){6}$/.test(expression)) return `${expression} # ${comment}`;
  } catch {
    // The text is not JSON, which the error below reports.
  }
  const names = Object.keys(CALENDAR).join(', ');
  const example = 'The value must be JSON such as {"dayOfWeek":"Fri","hour":"3"}.';
  throw new InvalidArgumentError(
    `${example} The fields are ${names}, and their values are texts without spaces.`,
  );
}
