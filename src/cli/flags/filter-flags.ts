import { type Command, InvalidArgumentError } from 'commander';
import type { FollowUpFilter, Phase } from '../../entries/client';
import { checkFilter } from '../../client/filter';
import { parseDuration } from '../../contract/duration';

/** The options with the names that commander gives them. */
export interface FilterFlags {
  readonly phase?: Phase;
  readonly outcome?: string;
  readonly project?: string;
  readonly job?: string;
  readonly batch?: string;
  readonly startedAfter?: Date;
  readonly startedBefore?: Date;
  readonly endedAfter?: Date;
  readonly endedBefore?: Date;
  readonly canRetry?: boolean;
}

const TIME = 'a time such as 2026-11-21T03:00:00Z, or a duration before now, such as 2h';

/** Adds the conditions of a list. The library's checker checks their values. */
export function addFilterFlags(command: Command): Command {
  return command
    .option(
      '--outcome <outcome>',
      'only follow-ups with this outcome (completed, DeadlineExceeded, …), delivery verdict (unknown, not-sent, …) or evidence (unchanged, …)',
    )
    .option('--project <id>', 'only follow-ups of this project')
    .option('--job <id>', 'only follow-ups of this job')
    .option('--batch <id>', 'only the items of this batch')
    .option(
      '--started-after <time>',
      `only follow-ups that started at this time or later; ${TIME}`,
      parseTimeFlag,
    )
    .option('--started-before <time>', 'only follow-ups that started before this time', parseTimeFlag)
    .option('--ended-after <time>', 'only follow-ups that ended at this time or later', parseTimeFlag)
    .option('--ended-before <time>', 'only follow-ups that ended before this time', parseTimeFlag);
}

/**
 * Returns the filter that the options describe. An option that is not set is undefined.
 *
 * @throws InvalidRequestError before the CLI connects, if the filter is invalid
 */
export function filterFromFlags(flags: FilterFlags): FollowUpFilter {
  const { phase, outcome, project: projectId, job: jobId, batch: batchId, canRetry } = flags;
  const { startedAfter, startedBefore, endedAfter, endedBefore } = flags;
  const times = { startedAfter, startedBefore, endedAfter, endedBefore };
  const filter = { phase, outcome, projectId, jobId, batchId, canRetry, ...times };
  checkFilter(filter);
  return filter;
}

/** A date, or a date and a time with a time zone. Without a time zone, the time would depend on the computer. */
const TIME_FORM = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

function parseTimeFlag(text: string): Date {
  const duration = parseDuration(text);
  const time =
    'ms' in duration ? new Date(Date.now() - duration.ms) : new Date(TIME_FORM.test(text) ? text : NaN);
  if (!Number.isNaN(time.getTime())) return time;
  throw new InvalidArgumentError(`The value must be ${TIME}. A time needs a time zone, such as Z or +02:00.`);
}
