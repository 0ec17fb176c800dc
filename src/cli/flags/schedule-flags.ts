import { ScheduleOverlapPolicy } from '@temporalio/client';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import type { ScheduleChange } from '../../client';
import { addRunFlags, type RunFlags } from './batch-input';
import { addLineFlags, durationOf, invalid, type LineFlags, requestOfFlags } from './request-flags';

/** The flags that say when a schedule fires, and how its batches run. `false` removes what was set. */
export interface ScheduleFlags extends Omit<RunFlags, 'tolerate'> {
  readonly cron?: string[];
  readonly calendar?: string[];
  readonly every?: number[];
  readonly offset?: number;
  readonly timezone?: string;
  readonly startAt?: Date | false;
  readonly endAt?: Date | false;
  readonly jitter?: number;
  readonly overlap?: string;
  readonly catchupWindow?: number;
  readonly pauseOnFailure?: boolean;
  readonly paused?: boolean;
  readonly note?: string;
  readonly tolerate?: RunFlags['tolerate'] | false;
  readonly taskQueue?: string;
}

/** Adds the flags. Cron expressions, time zones and ranges are checked by the server. */
export function addScheduleFlags(command: Command): Command {
  const more = '; may be given several times';
  const calendar = 'fire at the times of a calendar in JSON, as the Temporal CLI takes it';
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
    .option(
      '--catchup-window <duration>',
      'make up for a firing that is late by no more than this, for example after an outage (default: 10m)',
      durationOf,
    )
    .option('--pause-on-failure', 'pause the schedule when a batch fails, which it does beyond --tolerate')
    .option('--note <text>', 'shown in lists and in the Web UI');
  return addRunFlags(command);
}

/** The flags of an update, which can also remove what was set. */
export function addUpdateFlags(command: Command): Command {
  addScheduleFlags(command)
    .option('--no-start-at', 'remove the start')
    .option('--no-end-at', 'remove the end')
    .option('--no-pause-on-failure', 'continue when a batch fails')
    .option('--no-tolerate', 'tolerate any number of failures')
    .option('--task-queue <name>', 'task queue of its batches (default: as before)');
  return addLineFlags(command);
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

/** An overlap policy as a flag writes it, such as `buffer-all`. */
function overlapText(policy: string): string {
  return policy.toLowerCase().replace('_', '-');
}

export function overlapOf(text: string | undefined): ScheduleOverlapPolicy | undefined {
  return text?.toUpperCase().replace('-', '_') as ScheduleOverlapPolicy | undefined;
}

export function overlapFlag(help: string): Option {
  const policies = Object.values(ScheduleOverlapPolicy).filter((policy) => policy !== undefined);
  return new Option('--overlap <policy>', help).choices(policies.map(overlapText));
}

const part = z.string().regex(/^[^\s#]+$/, 'must be a text without spaces, such as "1-5" or "1,15"');

/** The fields of a calendar in the order of a cron expression of seven fields, and what each is if it is left out. */
const CALENDAR = z.strictObject({
  second: part.default('0'),
  minute: part.default('0'),
  hour: part.default('0'),
  dayOfMonth: part.default('*'),
  month: part.default('*'),
  dayOfWeek: part.default('*'),
  year: part.default('*'),
  comment: z.string().optional(),
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
  if (error) throw new InvalidArgumentError(z.prettifyError(error));
  const { comment, ...fields } = data;
  return [...Object.values(fields), ...(comment === undefined ? [] : [`# ${comment}`])].join(' ');
}

export function scheduleOf(flags: ScheduleFlags): ScheduleChange {
  const { cron = [], calendar = [], every, offset, startAt, endAt, tolerate, concurrency } = flags;
  const { timezone, jitter, catchupWindow, pauseOnFailure, paused, note, taskQueue } = flags;
  if (offset !== undefined && every === undefined)
    throw invalid('--offset', 'belongs to an interval; give --every too');
  const cronExpressions = [...cron, ...calendar];
  return {
    spec: {
      cronExpressions: cronExpressions.length > 0 ? cronExpressions : undefined,
      intervals: every?.map((each) => ({ every: each, offset: offset ?? 0 })),
      timezone,
      jitter,
      startAt: startAt === false ? null : startAt,
      endAt: endAt === false ? null : endAt,
    },
    policies: { overlap: overlapOf(flags.overlap), catchupWindow, pauseOnFailure },
    state: { paused, note },
    tolerate: tolerate === false ? null : tolerate,
    concurrency,
    taskQueue,
  };
}

/** Refuses flags that belong to items if no items are given. @throws InvalidRequestError */
export function refuseLineFlags(flags: LineFlags): void {
  const { format, promptFile } = flags;
  const all = { ...requestOfFlags(flags), format, promptFile };
  const text = 'is missing, but flags of its items are given (--project, --prompt, --when-active, …)';
  if (Object.values(all).some((value) => value !== undefined)) throw invalid('FILE', text);
}
