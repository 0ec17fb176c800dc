import type { FollowUpProgress } from '../client';
import { formatDuration } from '../contract/duration';

/** The whole progress of a follow-up as a table; `now` in milliseconds since the epoch. */
export function progressRows(progress: FollowUpProgress, now: number): [string, string][] {
  const { phase, job, delivery, evidence, observed, polls, nextPollAt, deadlineAt, lastAnswer } = progress;
  const by = delivery.confirmedBy === null ? '' : ` by ${delivery.confirmedBy}`;
  const counts = Object.entries(observed).map(([answer, count]) => `${answer} × ${count}`);
  return [
    ['phase', phase],
    ['status', job?.status ?? 'not read yet'],
    ['last answer', lastAnswer ?? 'none yet'],
    ['prLink', job?.prLink ?? 'null'],
    ['delivery', `${delivery.verdict}${by}, ${delivery.sends} ${delivery.sends === 1 ? 'send' : 'sends'}`],
    ['evidence', evidence ?? 'none yet'],
    ['polls', counts.length === 0 ? String(polls) : `${polls} (${counts.join(', ')})`],
    ['next read', nextPollAt === null ? 'none planned' : moment(nextPollAt, now)],
    ['deadline', moment(deadlineAt, now)],
  ];
}

function moment(at: string, now: number): string {
  const ms = Date.parse(at) - now;
  return ms <= 0 ? `${at} (now)` : `${at} (in ${formatDuration(ms)})`;
}
