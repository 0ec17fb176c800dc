import { ScheduleOverlapPolicy } from '@temporalio/client';
import { Command, InvalidArgumentError, Option } from 'commander';
import {
  checkSchedule,
  type CreateScheduleOptions,
  type RunOptions,
  type ScheduleHandle,
} from '../../entries/client';
import { isRecord } from '../../contract/checks';
import { addRunFlags, readBatchFile } from '../flags/batch-input';
import {
  addLineFlags,
  parseDurationFlag,
  invalid,
  type RequestFlags,
  requestFromFlags,
} from '../flags/request-flags';
import type { Session } from '../session';

const FILE_HELP = 'JSON Lines or CSV, as for batch run; - for stdin';

export function scheduleCommand(session: Session): Command {
  const schedules = new Command('schedule').description(
    'Sends the follow-ups of a file at set times, using a Temporal Schedule. Each firing starts a batch, whose ID is the ' +
      'schedule ID and the time: ID-2026-11-21T03:00:00Z. To list, describe, trigger, pause, backfill and delete ' +
      'schedules, use "temporal schedule".',
  );
  const addSubcommand = (name: string, description: string): Command =>
    schedules
      .command(name)
      .argument('<id>', 'your name for the schedule')
      .option('--json', 'print one JSON document')
      .description(description);
  const create = addSubcommand(
    'create',
    'Makes a schedule of the items of a file, which it keeps: at most 1 MiB of them, and without request ids.',
  ).argument('<file>', FILE_HELP);
  const example = session.command('schedule', 'create', 'nightly', 'jobs.csv', '--max-failures', '5%');
  addScheduleFlags(create)
    .addHelpText('after', `\nExample:\n  $ ${example} --cron "0 3 * * MON-FRI" --timezone Europe/Berlin`)
    .action(async (id: string, file: string, flags: ScheduleFlags) => {
      const { spec, ...options } = scheduleFromFlags(flags);
      if (spec === undefined) throw missingTimingError();
      const items = await readItems(session, id, file, flags);
      const handle = await (await session.connect()).schedules.create(id, items, { spec, ...options });
      await printNextFiring(session, 'created', handle, items.length);
    });
  const update = addSubcommand(
    'update',
    'Changes when a schedule fires, or what it sends. What is not given stays. The times are replaced as a whole; if a ' +
      'file is given, so are the items. A batch that runs continues as it was.',
  ).argument('[file]', `${FILE_HELP} (default: keep the items)`);
  addScheduleFlags(update).action(async (id: string, file: string | undefined, flags: ScheduleFlags) => {
    const change = scheduleFromFlags(flags);
    // JSON leaves out what is not given.
    if (file === undefined && JSON.stringify([requestFromFlags(flags), flags.promptFile]) !== '[{},null]')
      throw invalid('FILE', 'is missing, but flags of its items are given (--project, --prompt, …)');
    if (file === undefined && Object.keys(flags).every((flag) => flag === 'json'))
      throw invalid('schedule update', 'no change given; give a flag of the schedule, or a file of items');
    const items = file === undefined ? undefined : await readItems(session, id, file, flags);
    const handle = (await session.connect()).schedules.getHandle(id);
    await handle.update({ ...change, items });
    await printNextFiring(session, 'updated', handle, items?.length ?? null);
  });
  return schedules;
}

/** @param items null if the items are not changed */
async function printNextFiring(session: Session, done: string, handle: ScheduleHandle, items: number | null) {
  const { scheduleId } = handle;
  // The change is reported even if this call fails. The Temporal server returns the times of a paused schedule too.
  const { state, info } = (await handle.describe().catch(() => null)) ?? {};
  const time = state?.paused === false ? info?.nextActionTimes[0] : undefined;
  const next = time ? `${time.toISOString().slice(0, 19)}Z` : null;
  session.print({ scheduleId, items, next }, scheduleId);
  const none = `none known: temporal schedule describe --schedule-id ${scheduleId} tells more`;
  session.printStatus(`${done}\nnext        ${next ?? none}`);
}

function readItems(session: Session, id: string, file: string, flags: RequestFlags) {
  return readBatchFile(session.stdin, file, flags, (requests) => checkSchedule(id, requests));
}

interface ScheduleFlags extends RunOptions, RequestFlags {
  readonly cron?: string[];
  readonly calendar?: string[];
  readonly every?: number[];
  readonly overlap?: string;
}

/** Cron expressions, time zones and ranges are checked by the server. */
function addScheduleFlags(command: Command): Command {
  command
    .option('--cron <expression>', 'fire at these times; can be repeated', collectValues(String))
    .option(
      '--calendar <json>',
      'the same as the Temporal CLI takes it; can be repeated',
      collectValues(cronFromCalendar),
    )
    .option(
      '--every <duration>',
      'fire at each multiple since 1970; can be repeated',
      collectValues(parseDurationFlag),
    )
    .option('--offset <duration>', 'fire later than the multiple by this (default: 0s)', parseDurationFlag)
    .option('--timezone <name>', 'of --cron and --calendar, such as Europe/Berlin (default: UTC)')
    .addOption(overlapFlag())
    .option(
      '--catchup-window <duration>',
      'leave out a firing that is later (default: 10m)',
      parseDurationFlag,
    )
    .option(
      '--pause-on-failure',
      'pause the schedule when a batch fails, which it does beyond --max-failures',
    )
    .option('--no-pause-on-failure', 'continue when a batch fails')
    .option('--paused', 'do not fire until "temporal schedule toggle --unpause"');
  return addLineFlags(addRunFlags(command));
}

function scheduleFromFlags(flags: ScheduleFlags): Partial<CreateScheduleOptions> {
  const { cron = [], calendar = [], every, offset, timezone } = flags;
  const { overlap, catchupWindow, pauseOnFailure, paused, concurrency, maxFailures } = flags;
  if (offset !== undefined && every === undefined)
    throw invalid('--offset', 'belongs to an interval; give --every too');
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
  return invalid('spec', 'is missing; give --cron, --calendar or --every');
}

function collectValues<T>(read: (text: string) => T) {
  return (text: string, before: readonly T[] = []): T[] => [...before, read(text)];
}

function parseOverlap(text: string | undefined) {
  return text?.toUpperCase().replace('-', '_') as ScheduleOverlapPolicy | undefined;
}

function overlapFlag(): Option {
  const policies = Object.keys(ScheduleOverlapPolicy).filter((policy) => policy !== 'UNSPECIFIED');
  return new Option('--overlap <policy>', 'if the previous batch is running (default: skip)').choices(
    policies.map((policy) => policy.toLowerCase().replace('_', '-')),
  );
}

/** In the order of a cron expression of seven fields, and what each is if it is left out. */
const TIME = { second: '0', minute: '0', hour: '0' };
const CALENDAR = { ...TIME, dayOfMonth: '*', month: '*', dayOfWeek: '*', year: '*', comment: '' };

/** The cron expression of a calendar, which is how the Temporal CLI sends one too. */
function cronFromCalendar(text: string): string {
  try {
    const given: unknown = JSON.parse(text);
    const { comment, ...fields } = { ...CALENDAR, ...(given as Partial<typeof CALENDAR>) };
    const expression = Object.values(fields).join(' ');
    // Another field would be an eighth one.
    if (isRecord(given) && /^[^\s#]+( [^\s#]+){6}$/.test(expression)) return `${expression} # ${comment}`;
  } catch {
    // It is no JSON.
  }
  const names = Object.keys(CALENDAR).join(', ');
  const words = `It must be JSON such as {"dayOfWeek":"Fri","hour":"3"}, with texts without spaces for ${names}.`;
  throw new InvalidArgumentError(words);
}
