import type { ProgressReport, Receipt } from '../../client';
import type { FollowUpProgress } from '../../core/result';
import { formatDuration } from '../../core/units';

/** Where a follow-up stands, as one line; `now` in milliseconds since the epoch. */
export function progressText(progress: FollowUpProgress, now: number): string {
  const { phase, polls, nextPollAt, deadlineAt, evidence } = progress;
  const parts = [phase, answerText(progress)];
  if (polls > 0) parts.push(`poll ${polls}`);
  if (nextPollAt !== null)
    parts.push(`${sentYet(progress) ? 'next' : 'next try'} ${inTime(nextPollAt, now)}`);
  parts.push(deliveryText(progress));
  if (evidence !== null) parts.push(evidence);
  parts.push(`deadline ${inTime(deadlineAt, now)}`);
  return parts.filter((part) => part !== '').join(' · ');
}

/** Changes when a new line is worth printing, if lines can't be rewritten: with anything but the passing of time. */
export function progressKey({
  phase,
  job,
  delivery,
  evidence,
  lastAnswer,
  deadlineAt,
}: FollowUpProgress): string {
  return JSON.stringify([phase, job?.status, job?.prLink, delivery, evidence, lastAnswer, deadlineAt]);
}

/** What the server knows while no worker answers. */
export function serverText({ description, workers }: Extract<ProgressReport, { from: 'server' }>): string {
  const { phase, jobStatus, taskQueue } = description;
  const known = [phase, jobStatus].filter((word) => word !== null).join(' · ');
  const why =
    workers === 0
      ? `no worker answers on task queue ${taskQueue} (yet); the follow-up waits, nothing is lost`
      : `the worker on task queue ${taskQueue} does not answer (yet); nothing is lost`;
  return known === '' ? why : `${why} · ${known}`;
}

function answerText({ job, lastAnswer, delivery }: FollowUpProgress): string {
  if (lastAnswer === null) return '';
  if (lastAnswer === job?.status) return lastAnswer;
  // Anything but a status is trouble on the way to the service.
  return delivery.verdict === 'not-sent' && delivery.sends === 0
    ? `${lastAnswer}; nothing sent yet`
    : `${lastAnswer}${job === null ? '' : ` (job was ${job.status})`}`;
}

function sentYet({ delivery }: FollowUpProgress): boolean {
  return delivery.verdict !== 'not-sent';
}

function deliveryText({ delivery }: FollowUpProgress): string {
  switch (delivery.verdict) {
    case 'not-sent':
      return '';
    case 'accepted':
      return delivery.confirmedBy === 'response'
        ? 'message accepted'
        : `message accepted (by ${delivery.confirmedBy ?? ''})`;
    case 'rejected':
      return 'message rejected';
    case 'unknown':
      return 'delivery unknown';
  }
}

function inTime(at: string, now: number): string {
  const ms = Date.parse(at) - now;
  return ms <= 0 ? 'now' : `in ${formatDuration(Math.ceil(ms / 1_000) * 1_000)}`;
}

/** The whole progress of a follow-up as names and values; `now` in milliseconds since the epoch. */
export function progressRows(progress: FollowUpProgress, now: number): [string, string][] {
  const { phase, job, nextPollAt, deadlineAt, lastAnswer } = progress;
  return [
    ['phase', phase],
    ['status', job?.status ?? 'not read yet'],
    ['last answer', lastAnswer ?? 'none yet'],
    ['prLink', job?.prLink ?? 'null'],
    ...receiptRows(progress),
    ['next read', nextPollAt === null ? 'none planned' : moment(nextPollAt, now)],
    ['deadline', moment(deadlineAt, now)],
  ];
}

/** How the message was delivered, why its end is believed, and what polls have seen. */
export function receiptRows(
  receipt: Pick<Receipt, 'delivery' | 'evidence' | 'polls' | 'observed'>,
): [string, string][] {
  const { delivery, evidence, polls, observed } = receipt;
  const by = delivery.confirmedBy === null ? '' : ` by ${delivery.confirmedBy}`;
  const counts = Object.entries(observed).map(([answer, count]) => `${answer} × ${count}`);
  return [
    ['delivery', `${delivery.verdict}${by}, ${delivery.sends} ${delivery.sends === 1 ? 'send' : 'sends'}`],
    ['evidence', evidence ?? 'none'],
    ['polls', counts.length === 0 ? String(polls) : `${polls} (${counts.join(', ')})`],
  ];
}

function moment(at: string, now: number): string {
  const ms = Date.parse(at) - now;
  return ms <= 0 ? `${at} (now)` : `${at} (in ${formatDuration(ms)})`;
}
