import type { JobState } from '../contract/job';

/**
 * For how many more milliseconds a believed job is re-read for a late `prLink`; 0 when there is nothing to wait for.
 *
 * The service may fill the link after `completed` (specification: "populated once the agent has created a pull
 * request"), and a turn that changed no file leaves it null for ever: only time tells the two apart.
 *
 * @param since when the believed status was first heard, in milliseconds since the epoch
 */
export function settleRemaining(job: JobState, since: number, now: number, settleMs: number): number {
  if (job.status !== 'completed' || job.prLink !== null) return 0;
  return Math.max(0, since + settleMs - now);
}
