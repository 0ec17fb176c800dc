import { isTerminal, type JobState } from '../contract/job';
import type { WhenActive } from '../contract/request';
import { showsTurn } from './evidence';

/**
 * What the look at the job right before a POST decides:
 *
 * - `send`: the message may be sent.
 * - `arrived`: the job has moved since an earlier POST of unknown delivery, which proves that one.
 * - `wait`, `reject`: the job is active, and `whenActive` says so. A status nobody knows counts as active.
 */
export type SendDecision = 'send' | 'arrived' | 'wait' | 'reject';

/** @param earlierBaseline the job before an earlier POST of unknown delivery; null where there was none */
export function decideSend(
  job: JobState,
  whenActive: WhenActive,
  earlierBaseline: JobState | null,
): SendDecision {
  if (showsTurn(earlierBaseline, job)) return 'arrived';
  return isTerminal(job.status) ? 'send' : whenActive;
}
