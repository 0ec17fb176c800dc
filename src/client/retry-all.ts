import { count, type Problem } from '../contract/checks';
import { FollowUpError, hasCode } from '../contract/follow-up-error';
import { groupsOf } from '../temporal/each-concurrently';
import { CALL_CHECKS, type CallOptions } from './call-runner';
import type { FollowUpDescription } from './description';
import { throwIfProblems } from './errors';
import { checkFilter, type FollowUpFilter } from './filter';
import type { FollowUpClientLike } from './interfaces';
import { booleanProblem, checkOptions, type OptionChecks, createCheck } from './options';

export interface RetryAllOptions extends CallOptions {
  /** If true, nothing is started, and the results show the follow-ups that the call would retry. @default false */
  readonly dryRun?: boolean | undefined;
  /** The maximum number of follow-ups. @default unlimited */
  readonly limit?: number | undefined;
}

/** The result for one follow-up. */
export interface RetryResult {
  /** The follow-up before the retry. Its `runId` is the run that had ended. */
  readonly followUp: FollowUpDescription;
  /** The ID of the new run. Null if no run was started. */
  readonly runId: string | null;
  /** Why the follow-up was not retried. Null if it was retried, and in a dry run. */
  readonly error: FollowUpError | null;
}

/** The number of follow-ups that are retried at the same time. */
const CONCURRENT_RETRIES = 16;

/**
 * The errors that end the call, because a retry of the next follow-up would probably fail too. Any other error is in the result of its
 * follow-up.
 */
export const FINAL_ERRORS = [
  'UNREACHABLE',
  'START_UNCONFIRMED',
  'WAIT_TIMEOUT',
  'CLIENT_CLOSED',
  'UNAUTHORIZED',
] as const;

const CHECKS: OptionChecks<RetryAllOptions> = {
  dryRun: booleanProblem,
  limit: createCheck((value) => count(value) && value > 0, 'a whole number, at least 1'),
  ...CALL_CHECKS,
};

/** Checks the input of `retryAll`. @throws InvalidRequestError */
export function checkRetryAll(filter: FollowUpFilter, options: RetryAllOptions): void {
  checkFilter(filter);
  checkOptions(options, CHECKS);
  const { canRetry, ...conditions } = filter;
  const problems: Problem[] = [];
  if (canRetry !== undefined)
    problems.push({
      field: 'canRetry',
      text: 'must be left out, because retryAll always applies this condition',
    });
  if (Object.values(conditions).every((value) => value === undefined))
    problems.push({
      field: 'filter',
      text: 'is empty; set at least one condition, such as outcome or endedAfter',
    });
  throwIfProblems(problems);
}

/**
 * Retries each follow-up that matches the filter, with the handle's `retry`. The receipt therefore decides for each follow-up, and a
 * message of unknown delivery is never sent again. No follow-up is retried twice by one call.
 */
export async function* retryAll(
  followUps: Pick<FollowUpClientLike, 'list' | 'getHandle'>,
  filter: FollowUpFilter,
  { dryRun = false, limit = Infinity, ...options }: RetryAllOptions,
): AsyncGenerator<RetryResult, void, undefined> {
  const retry = async (followUp: FollowUpDescription): Promise<RetryResult> => {
    if (dryRun) return { followUp, runId: null, error: null };
    try {
      const { runId } = await followUps.getHandle(followUp.workflowId, followUp.runId).retry(options);
      return { followUp, runId, error: null };
    } catch (error) {
      if (error instanceof FollowUpError && !hasCode(error, ...FINAL_ERRORS))
        return { followUp, runId: null, error };
      throw error;
    }
  };
  for await (const group of groupsOf(
    retryable(followUps, filter, { limit, ...options }),
    CONCURRENT_RETRIES,
  )) {
    const settled = await Promise.allSettled(group.map(retry));
    for (const each of settled) if (each.status === 'fulfilled') yield each.value;
    for (const each of settled) if (each.status === 'rejected') throw each.reason;
  }
}

/** Lists the follow-ups that can be retried. A cancelled follow-up is listed only if the filter names this outcome. */
async function* retryable(
  followUps: Pick<FollowUpClientLike, 'list'>,
  filter: FollowUpFilter,
  { limit, ...options }: CallOptions & { readonly limit: number },
): AsyncGenerator<FollowUpDescription, void, undefined> {
  const listedIds = new Set<string>();
  for await (const followUp of followUps.list({ ...filter, canRetry: true }, options)) {
    const { workflowId, outcome } = followUp;
    if (listedIds.has(workflowId) || (outcome === 'cancelled' && filter.outcome !== outcome)) continue;
    listedIds.add(workflowId);
    yield followUp;
    if (listedIds.size === limit) return;
  }
}
