import { ScheduleOverlapPolicy } from '@temporalio/client';

/** What happens when a schedule is to fire while the batch of an earlier firing still runs, as Temporal names it. */
export const OVERLAPS = [
  'skip',
  'buffer-one',
  'buffer-all',
  'allow-all',
  'cancel-other',
  'terminate-other',
] as const;
export type Overlap = (typeof OVERLAPS)[number];

const POLICIES = {
  skip: ScheduleOverlapPolicy.SKIP,
  'buffer-one': ScheduleOverlapPolicy.BUFFER_ONE,
  'buffer-all': ScheduleOverlapPolicy.BUFFER_ALL,
  'allow-all': ScheduleOverlapPolicy.ALLOW_ALL,
  'cancel-other': ScheduleOverlapPolicy.CANCEL_OTHER,
  'terminate-other': ScheduleOverlapPolicy.TERMINATE_OTHER,
} as const;

export function policyOf(overlap: Overlap) {
  return POLICIES[overlap];
}

export function overlapOf(policy: ScheduleOverlapPolicy): Overlap {
  return OVERLAPS.find((overlap) => POLICIES[overlap] === policy) ?? 'skip';
}

/** Why a text is no overlap policy; undefined where it is one. */
export function overlapProblem(text: string): string | undefined {
  if (OVERLAPS.some((known) => known === text)) return undefined;
  return `must be one of ${OVERLAPS.join(', ')}; it is ${JSON.stringify(text.slice(0, 40))}`;
}
