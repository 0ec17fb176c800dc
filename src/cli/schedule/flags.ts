import type { Command } from 'commander';
import { OVERLAPS, type ScheduleOptions } from '../../client';
import { addRunFlags, batchOptionsOf } from '../batch/flags';

/** The flags that say when a schedule fires, and how its batches run. Only what was given is there. */
export interface ScheduleFlags {
  readonly cron?: readonly string[];
  readonly calendar?: readonly string[];
  readonly every?: readonly string[];
  readonly offset?: string;
  readonly timezone?: string;
  /** False where it is taken away. */
  readonly startAt?: string | false;
  readonly endAt?: string | false;
  readonly jitter?: string;
  readonly overlap?: string;
  readonly catchupWindow?: string;
  readonly pauseOnFailure?: boolean;
  readonly note?: string;
  readonly concurrency?: string;
  readonly tolerate?: string | false;
}

/** Adds the flags; what they hold is checked by the client, which finds all problems at once. */
export function addScheduleFlags(command: Command): Command {
  command
    .option(
      '--cron <expression>',
      'fire at these times: minute hour day-of-month month day-of-week; several are possible',
      collect,
    )
    .option(
      '--calendar <fields>',
      'the same in words, "dayOfWeek=MON-FRI hour=3 minute=30"; several are possible',
      collect,
    )
    .option('--every <duration>', 'fire at each multiple of this since 1970; several are possible', collect)
    .option('--offset <duration>', 'so much later than the multiple of --every (default: 0s)')
    .option('--timezone <name>', 'of --cron and --calendar, as Europe/Berlin (default: UTC)')
    .option('--start-at <time>', 'not before, ISO 8601 with a zone (default: at once)')
    .option('--end-at <time>', 'not after, ISO 8601 with a zone (default: never)')
    .option('--jitter <duration>', 'late by a random time up to this (default: 0s)')
    .option(
      '--overlap <policy>',
      `if the batch before still runs: ${OVERLAPS.join(', ')} (default: ${OVERLAPS[0]})`,
    )
    .option(
      '--catchup-window <duration>',
      'make up for a firing that is late by no more than this, for example after an outage (default: 10m)',
    )
    .option('--pause-on-failure', 'pause the schedule when a batch fails, which it does beyond --tolerate')
    .option('--note <text>', 'shown in lists and in the Web UI');
  return addRunFlags(command);
}

/** @throws UsageError for flags whose values only the starter knows */
export function scheduleOptionsOf(flags: ScheduleFlags): ScheduleOptions {
  const { cron, calendar: calendars, every, offset, jitter, overlap, catchupWindow } = flags;
  const { concurrency, tolerate, timezone, startAt, endAt, pauseOnFailure } = flags;
  const given = {
    cron,
    calendars,
    every,
    offset,
    timezone,
    startAt: startAt === false ? null : startAt,
    endAt: endAt === false ? null : endAt,
    jitter,
    overlap,
    catchupWindow,
    pauseOnFailure,
    ...batchOptionsOf({ concurrency, tolerate: tolerate === false ? undefined : tolerate }),
    ...(tolerate === false ? { tolerate: null } : {}),
  };
  const present = Object.entries(given).filter(([, value]) => value !== undefined);
  // The client checks durations and policies, whatever they are.
  return Object.fromEntries(present);
}

const FLAG_OF_FIELD: Readonly<Record<string, string>> = {
  scheduleId: 'ID',
  items: 'FILE',
  startAt: '--start-at',
  endAt: '--end-at',
  catchupWindow: '--catchup-window',
  pauseOnFailure: '--pause-on-failure',
  'from, to': '--from, --to',
};

/** A problem of the client's in the words of the command line. */
export function problemOfSchedule(problem: string): string {
  const [, field, rest = ''] = /^(from, to|[a-zA-Z]+)(: .*)$/s.exec(problem) ?? [];
  if (field === undefined) return problem;
  if (field === 'timing')
    return 'when it fires is missing; give --cron, --calendar or --every, one or more of them';
  return `${FLAG_OF_FIELD[field] ?? `--${field}`}${rest}`;
}

function collect(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value];
}
