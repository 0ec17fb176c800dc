import { type Command, Option } from 'commander';
import { ScheduleOverlapPolicy } from '@temporalio/client';
import {
  type CheckedBatch,
  type FiringOptions,
  type NewScheduleOptions,
  type ScheduleChange,
} from '../../client';
import { checkScheduleId, exampleBatchId, NO_NAMES } from '../../client/schedules/action';
import { isRecord } from '../../core/json';
import { quote } from '../../core/text';
import { parseDuration } from '../../core/units';
import { readBatch } from '../batch-input/read-batch';
import { UsageError } from '../exit-codes';
import type { Session } from '../session';
import { addRunFlags, batchOptionsOf } from './batch-flags';
import { readPrompt } from './prompt-source';
import { type LineFlags, requestOfFlags } from './request-flags';

/** The flags that say when a schedule fires, and how its batches run. Only what was given is there. */
export interface ScheduleFlags {
  readonly cron?: string[];
  readonly calendar?: readonly string[];
  readonly every?: readonly string[];
  readonly offset?: string;
  readonly timezone?: string;
  /** False if it is to be removed. */
  readonly startAt?: string | false;
  readonly endAt?: string | false;
  readonly jitter?: string;
  readonly overlap?: ScheduleOverlapPolicy;
  readonly catchupWindow?: string;
  readonly pauseOnFailure?: boolean;
  readonly paused?: boolean;
  readonly note?: string;
  readonly concurrency?: string;
  readonly tolerate?: string | false;
  readonly taskQueue?: string;
}

/** Adds the flags. Cron expressions, time zones and ranges are checked by the server. */
export function addScheduleFlags(command: Command): Command {
  const several = '; may be given several times';
  command
    .option('--cron <expression>', `fire at the times of a cron expression${several}`, collect)
    .option(
      '--calendar <json>',
      `fire at the times of a calendar in JSON, as the Temporal CLI takes it${several}`,
      collect,
    )
    .option('--every <duration>', `fire at each multiple of this since 1970${several}`, collect)
    .option('--offset <duration>', 'fire later than the multiple of --every by this (default: 0s)')
    .option('--timezone <name>', 'time zone of --cron and --calendar, such as Europe/Berlin (default: UTC)')
    .option('--start-at <time>', 'fire not before this time, ISO 8601 with an offset (default: at once)')
    .option('--end-at <time>', 'fire not after this time, ISO 8601 with an offset (default: no end)')
    .option('--jitter <duration>', 'fire late by a random time up to this (default: less than 1s)')
    .addOption(overlapFlag('if the previous batch still runs (default: skip)'))
    .option(
      '--catchup-window <duration>',
      'make up for a firing that is late by no more than this, for example after an outage (default: 10m)',
    )
    .option('--pause-on-failure', 'pause the schedule when a batch fails, which it does beyond --tolerate')
    .option('--note <text>', 'shown in lists and in the Web UI');
  return addRunFlags(command);
}

/** Overlap policies as flags write them, and as Temporal does. */
const OVERLAPS = Object.values(ScheduleOverlapPolicy).filter((policy) => policy !== undefined);

export function overlapFlag(help: string): Option {
  const choices = OVERLAPS.map((policy) => policy.toLowerCase().replace('_', '-'));
  return new Option('--overlap <policy>', `${help}: ${choices.join(', ')}`).argParser((text) => {
    const policy = OVERLAPS[choices.indexOf(text)];
    if (policy !== undefined) return policy;
    throw new UsageError([`--overlap: must be one of ${choices.join(', ')}; it is ${quote(text)}`]);
  });
}

/** What the flags describe. @throws UsageError with every problem */
export function scheduleOf(flags: ScheduleFlags): ScheduleChange {
  const problems: string[] = [];
  const { cron = [], calendar = [], every = [], offset, timezone, concurrency, tolerate } = flags;
  if (offset !== undefined && every.length === 0)
    problems.push('--offset: belongs to an interval; give --every too');
  const offsetMs = milliseconds('--offset', offset, problems);
  const intervals = every.map((text) => ({
    every: milliseconds('--every', text, problems) ?? 0,
    ...(offsetMs === undefined ? {} : { offset: offsetMs }),
  }));
  const cronExpressions = [...cron, ...calendar.map((text) => cronOf(text, problems))];
  const spec = {
    ...(cronExpressions.length > 0 ? { cronExpressions } : {}),
    ...(intervals.length > 0 ? { intervals } : {}),
    timezone,
    startAt: flags.startAt === false ? null : timeOf('--start-at', flags.startAt, problems),
    endAt: flags.endAt === false ? null : timeOf('--end-at', flags.endAt, problems),
    jitter: milliseconds('--jitter', flags.jitter, problems),
  };
  const policies = {
    overlap: flags.overlap,
    catchupWindow: milliseconds('--catchup-window', flags.catchupWindow, problems),
    pauseOnFailure: flags.pauseOnFailure,
  };
  const state = { paused: flags.paused, note: flags.note };
  if (problems.length > 0) throw new UsageError(problems);
  const options: FiringOptions = {
    ...batchOptionsOf({ concurrency, tolerate: tolerate === false ? undefined : tolerate }),
    ...(tolerate === false ? { tolerate: null } : {}),
    taskQueue: flags.taskQueue,
  };
  return { spec, policies, state, ...options };
}

/** The flags as those of a new schedule, from which nothing is removed. @throws UsageError when it would never fire */
export function newScheduleOf(flags: ScheduleFlags): NewScheduleOptions {
  const { spec, policies, state, ...options } = scheduleOf(flags);
  if (flags.cron === undefined && flags.calendar === undefined && flags.every === undefined)
    throw new UsageError(['the timing is missing; give --cron, --calendar or --every']);
  return { ...options, spec: given(spec), policies: given(policies), state: given(state) };
}

function given(fields: object | undefined): object {
  return Object.fromEntries(Object.entries(fields ?? {}).filter(([, value]) => value !== undefined));
}

function milliseconds(flag: string, text: string | undefined, problems: string[]): number | undefined {
  if (text === undefined) return undefined;
  const parsed = parseDuration(text);
  if ('ms' in parsed) return parsed.ms;
  problems.push(`${flag}: ${parsed.problem}`);
  return undefined;
}

/** The fields of a calendar in the order of a cron expression of seven fields, and what each is if it is left out. */
const CALENDAR_FIELDS = {
  second: '0',
  minute: '0',
  hour: '0',
  dayOfMonth: '*',
  month: '*',
  dayOfWeek: '*',
  year: '*',
} as const;

/** The cron expression of a calendar, which is how the Temporal CLI sends one too. */
function cronOf(text: string, problems: string[]): string {
  const calendar = jsonOf(text);
  if (!isRecord(calendar)) {
    problems.push(
      `--calendar: must be an object such as {"dayOfWeek":"Fri","hour":"3"}; it is ${quote(text)}`,
    );
    return '';
  }
  const { comment, ...fields } = calendar;
  const known = Object.keys(CALENDAR_FIELDS);
  for (const name of Object.keys(fields).filter((each) => !known.includes(each))) {
    problems.push(
      `--calendar: ${quote(name)} is not a field of a calendar; the fields are ${known.join(', ')}`,
    );
  }
  const parts = Object.entries(CALENDAR_FIELDS).map(([name, usual]) => {
    const value = fields[name] ?? usual;
    if (typeof value === 'string' && /^[^\s#]+$/.test(value)) return value;
    problems.push(
      `--calendar: ${name} must be a text without spaces, such as "1-5" or "1,15"; it is ${quote(value)}`,
    );
    return usual;
  });
  return [...parts, ...(typeof comment === 'string' ? [`# ${comment}`] : [])].join(' ');
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Without an offset it would be another time on each machine. */
const ISO_8601 = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

export function timeOf(flag: string, text: string | undefined, problems: string[]): Date | undefined {
  if (text === undefined) return undefined;
  const [, day = ''] = ISO_8601.exec(text) ?? [];
  const at = new Date(text);
  // JavaScript takes the 30th of February for the 2nd of March.
  const midnight = new Date(`${day}T00:00Z`);
  if (
    !Number.isNaN(at.getTime()) &&
    !Number.isNaN(midnight.getTime()) &&
    midnight.toISOString().startsWith(day)
  )
    return at;
  problems.push(
    `${flag}: ${quote(text)} is not an ISO 8601 date-time with an offset, for example "2026-11-21T03:00:00Z" or "2026-11-21T03:00+01:00"`,
  );
  return undefined;
}

/**
 * Reads what a schedule is to send, from a file or stdin.
 *
 * @throws UsageError, InvalidRequestError with every line that is wrong
 */
export async function readItems(
  { stdin }: Session,
  scheduleId: string,
  file: string,
  flags: LineFlags,
): Promise<CheckedBatch> {
  checkScheduleId(scheduleId);
  if (file === '-' && flags.promptFile === '-') {
    throw new UsageError(['--prompt-file: stdin can be read only once, and the items are read from it']);
  }
  const prompt = await readPrompt(flags, stdin);
  return readBatch({
    file,
    stdin,
    flags,
    prompt,
    batchId: exampleBatchId(scheduleId),
    noNames: NO_NAMES,
  });
}

/** Refuses flags that belong to items if no items are given. @throws UsageError */
export function refuseLineFlags(flags: LineFlags): void {
  const { format, promptFile, prompt } = flags;
  const all = { ...requestOfFlags(flags, prompt, undefined), format, promptFile };
  if (Object.values(all).every((value) => value === undefined)) return;
  throw new UsageError([
    'FILE: is missing, but flags of its items are given (--project, --prompt, --when-active, …)',
  ]);
}

function collect(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value];
}
