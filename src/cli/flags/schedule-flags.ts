import type { Command } from 'commander';
import { type Calendar, type CheckedBatch, InvalidScheduleError, type ScheduleSpec } from '../../client';
import { exampleBatchId, idProblems as scheduleIdProblems, NO_NAMES } from '../../client/schedules/action';
import { OVERLAPS } from '../../client/schedules/settings';
import { readBatch } from '../batch-input/read-batch';
import { UsageError } from '../exit-codes';
import type { Session } from '../session';
import { addRunFlags, batchOptionsOf } from './batch-flags';
import { type LineFlags, requestOfFlags } from './request-flags';
import { readPrompt } from './prompt-source';

/** The flags that say when a schedule fires, and how its batches run. Only what was given is there. */
export interface ScheduleFlags {
  readonly cron?: readonly string[];
  readonly calendar?: readonly string[];
  readonly every?: readonly string[];
  readonly offset?: string;
  readonly timezone?: string;
  /** False if it is to be removed. */
  readonly startAt?: string | false;
  readonly endAt?: string | false;
  readonly jitter?: string;
  readonly overlap?: string;
  readonly catchupWindow?: string;
  readonly pauseOnFailure?: boolean;
  readonly note?: string;
  readonly concurrency?: string;
  readonly tolerate?: string | false;
  readonly taskQueue?: string;
}

/** Adds the flags; what they hold is checked by the client and the server. */
export function addScheduleFlags(command: Command): Command {
  command
    .option(
      '--cron <expression>',
      'fire at the times of a cron expression; may be given several times',
      collect,
    )
    .option(
      '--calendar <json>',
      'the same as a calendar of Temporal, in JSON; may be given several times',
      collect,
    )
    .option(
      '--every <duration>',
      'fire at each multiple of this since 1970; may be given several times',
      collect,
    )
    .option('--offset <duration>', 'fire later than the multiple of --every by this (default: 0s)')
    .option('--timezone <name>', 'time zone of --cron and --calendar, such as Europe/Berlin (default: UTC)')
    .option('--start-at <time>', 'fire not before this time, ISO 8601 with an offset (default: at once)')
    .option('--end-at <time>', 'fire not after this time, ISO 8601 with an offset (default: no end)')
    .option('--jitter <duration>', 'fire late by a random time up to this (default: 0s)')
    .option('--overlap <policy>', `if the previous batch still runs: ${OVERLAPS.join(', ')} (default: skip)`)
    .option(
      '--catchup-window <duration>',
      'make up for a firing that is late by no more than this, for example after an outage (default: 10m)',
    )
    .option('--pause-on-failure', 'pause the schedule when a batch fails, which it does beyond --tolerate')
    .option('--note <text>', 'shown in lists and in the Web UI');
  return addRunFlags(command);
}

/** What the flags describe, unchecked. @throws UsageError for flags whose form only the starter knows */
export function scheduleSpecOf(flags: ScheduleFlags): ScheduleSpec {
  const { cron, calendar, every, offset, concurrency, tolerate, startAt, endAt } = flags;
  const { timezone, jitter, overlap, catchupWindow, pauseOnFailure, note, taskQueue } = flags;
  if (offset !== undefined && every === undefined)
    throw new UsageError(['--offset: belongs to an interval; give --every too']);
  const given = {
    cron,
    calendars: calendar?.map(calendarOf),
    intervals: every?.map((each) => ({ every: each, ...(offset === undefined ? {} : { offset }) })),
    timezone,
    startAt: startAt === false ? null : startAt,
    endAt: endAt === false ? null : endAt,
    jitter,
    overlap,
    catchupWindow,
    pauseOnFailure,
    note,
    taskQueue,
    ...batchOptionsOf({ concurrency, tolerate: tolerate === false ? undefined : tolerate }),
    ...(tolerate === false ? { tolerate: null } : {}),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** The value of a JSON text, or the text itself if it is not JSON: the client reports it. */
function calendarOf(text: string): Calendar {
  try {
    return JSON.parse(text) as Calendar;
  } catch {
    return text as Calendar;
  }
}

/**
 * Reads what a schedule is to send, from a file or stdin.
 *
 * @throws UsageError, InvalidScheduleError, InvalidBatchError with every line that is wrong
 */
export async function readItems(
  { stdin }: Session,
  scheduleId: string,
  file: string,
  flags: LineFlags,
): Promise<CheckedBatch> {
  const problems = scheduleIdProblems(scheduleId);
  if (problems.length > 0) throw new InvalidScheduleError(problems);
  if (file === '-' && flags.promptFile === '-') {
    throw new UsageError(['--prompt-file: stdin can be read only once, and the items are read from it']);
  }
  const prompt = await readPrompt(flags, stdin);
  const batchId = exampleBatchId(scheduleId);
  return readBatch({ file, stdin, flags, prompt, batchId, noNames: NO_NAMES });
}

/** Refuses flags that belong to items if no items are given. @throws UsageError */
export function refuseLineFlags(flags: LineFlags): void {
  const { format, promptFile, prompt } = flags;
  const given = { ...requestOfFlags(flags, prompt, undefined), format, promptFile };
  if (Object.values(given).every((value) => value === undefined)) return;
  throw new UsageError([
    'FILE: is missing, but flags of its items are given (--project, --prompt, --when-active, …)',
  ]);
}

const FLAG_OF_FIELD: Readonly<Record<string, string>> = {
  scheduleId: 'ID',
  items: 'FILE',
  startAt: '--start-at',
  endAt: '--end-at',
  catchupWindow: '--catchup-window',
  pauseOnFailure: '--pause-on-failure',
  'cron, calendar': '--cron, --calendar',
  'start, end': '--from, --to',
  start: '--from',
  end: '--to',
};

/** A problem of the client's in the words of the command line. */
export function problemOfSchedule(problem: string): string {
  const [, field, rest = ''] = /^([a-zA-Z]+(?:, [a-z]+)?)(: .*)$/s.exec(problem) ?? [];
  if (field === undefined) return problem;
  if (field === 'timing') return 'the timing is missing; give --cron, --calendar or --every';
  return `${FLAG_OF_FIELD[field] ?? `--${field}`}${rest}`;
}

function collect(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value];
}
