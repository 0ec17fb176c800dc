import { keywordAttribute, OUTCOME_KEY } from '../contract/follow-up-start-options';
import type { KeywordName } from '../contract/names';
import { canRetry, type Phase } from '../contract/result';
import type { FollowUpDescription } from './description';
import { booleanProblem, checkOptions, type OptionChecks, createCheck, stringProblem } from './options';

/** The conditions of a list, all of which must hold for the latest run of a follow-up. An omitted field does not restrict the list. */
export interface FollowUpFilter {
  readonly phase?: Phase | undefined;
  /** The outcome, such as `DeadlineExceeded`, the verdict, such as `unknown`, or the evidence of a result, such as `unchanged`. */
  readonly outcome?: string | undefined;
  readonly projectId?: string | undefined;
  readonly jobId?: string | undefined;
  readonly batchId?: string | undefined;
  /** The earliest start: a `Date`, or ISO 8601 with a time zone, such as `2026-11-21T03:00:00Z`. The other times have the same form. */
  readonly startedAfter?: Time | undefined;
  /** The end of the range: the follow-ups started before this time. */
  readonly startedBefore?: Time | undefined;
  /** The earliest end. A running follow-up has no end, so the list has no running follow-up. */
  readonly endedAfter?: Time | undefined;
  /** The end of the range: the follow-ups ended before this time. */
  readonly endedBefore?: Time | undefined;
  /** If true, the list has only follow-ups that have ended with the verdict `not-sent` or `rejected`, which `retry` requires. */
  readonly canRetry?: boolean | undefined;
}

type Time = Date | string;

const ATTRIBUTES = {
  phase: 'FollowUpPhase',
  projectId: 'AgentProject',
  jobId: 'AgentJob',
  batchId: 'FollowUpBatch',
} as const satisfies Partial<Record<keyof FollowUpFilter, KeywordName>>;
type AttributeField = keyof typeof ATTRIBUTES;
const ATTRIBUTE_FIELDS = Object.keys(ATTRIBUTES) as readonly AttributeField[];

/** The column of the visibility list, the field of the description, and whether the time is the earliest one. */
const TIMES = {
  startedAfter: ['StartTime', 'startedAt', true],
  startedBefore: ['StartTime', 'startedAt', false],
  endedAfter: ['CloseTime', 'endedAt', true],
  endedBefore: ['CloseTime', 'endedAt', false],
} as const;
type TimeField = keyof typeof TIMES;
const TIME_FIELDS = Object.keys(TIMES) as readonly TimeField[];

/** ISO 8601 with a time zone. Without a time zone, the time would depend on the computer. */
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

const timeProblem = createCheck(
  (value) =>
    (value instanceof Date || (typeof value === 'string' && ISO_TIME.test(value))) &&
    !Number.isNaN(+new Date(value)),
  'a Date, or ISO 8601 with a time zone, such as 2026-11-21T03:00:00Z',
);

const CHECKS: OptionChecks<FollowUpFilter> = {
  phase: stringProblem,
  projectId: stringProblem,
  jobId: stringProblem,
  batchId: stringProblem,
  outcome: createCheck(
    (value) => typeof value === 'string' && /^[a-z-]+$/i.test(value),
    'an outcome, a verdict or an evidence, such as completed, unknown or unchanged',
  ),
  startedAfter: timeProblem,
  startedBefore: timeProblem,
  endedAfter: timeProblem,
  endedBefore: timeProblem,
  canRetry: booleanProblem,
};

/** @throws InvalidRequestError with every problem of the filter */
export function checkFilter(filter: unknown): asserts filter is FollowUpFilter {
  checkOptions(filter, CHECKS, 'filter');
}

/** Returns the search attributes that a filter requires. */
export function attributesFromFilter(filter: FollowUpFilter) {
  return ATTRIBUTE_FIELDS.flatMap((field) => {
    const value = filter[field];
    return value === undefined ? [] : [keywordAttribute(ATTRIBUTES[field], value)];
  });
}

/** Returns the other conditions of a filter as the end of a visibility query. */
export function queryFromFilter(filter: FollowUpFilter): string {
  const conditions: string[] = [];
  const hasValue = (value: string) => `${OUTCOME_KEY.name} = '${value}'`;
  if (filter.outcome !== undefined) conditions.push(hasValue(filter.outcome));
  if (filter.canRetry === true) conditions.push(`(${hasValue('not-sent')} OR ${hasValue('rejected')})`);
  for (const field of TIME_FIELDS) {
    const [column, , isEarliest] = TIMES[field];
    const time = filter[field];
    if (time !== undefined)
      conditions.push(`${column} ${isEarliest ? '>=' : '<'} '${new Date(time).toISOString()}'`);
  }
  return conditions.map((condition) => ` AND ${condition}`).join('');
}

/** Returns whether a follow-up fulfills the conditions of a filter, apart from those in {@link attributesFromFilter}. */
export function matchesFilter(found: FollowUpDescription, filter: FollowUpFilter): boolean {
  const { outcome, canRetry: retryable } = filter;
  const values: readonly (string | null)[] = [found.outcome, found.verdict, found.evidence];
  if (outcome !== undefined && !values.includes(outcome)) return false;
  if (retryable === true && (found.state === 'running' || !canRetry(found.verdict))) return false;
  return TIME_FIELDS.every((field) => {
    const [, name, isEarliest] = TIMES[field];
    const limit = filter[field];
    const time = found[name];
    if (limit === undefined) return true;
    return (
      time !== null && (isEarliest ? +new Date(time) >= +new Date(limit) : +new Date(time) < +new Date(limit))
    );
  });
}
