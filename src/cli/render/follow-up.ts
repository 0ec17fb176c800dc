import type { AgentJob, FollowUpProgress, ProgressReport, Receipt } from '../../entries/client';
import { phaseRows } from '../../contract/result';
import { counted } from '../../contract/text';
import { formatDuration } from '../../contract/duration';
import type { Session } from '../session';
import type { Row } from './text';

export function rowIf(name: string, value: string | number | null | undefined): Row[] {
  return value === null || value === undefined ? [] : [[name, String(value)]];
}

export function jobRows({ status, prLink }: AgentJob): Row[] {
  return [
    ['status', status],
    ['prLink', prLink ?? 'null'],
  ];
}

export function receiptRows({
  delivery,
  evidence,
  polls,
  responseCounts,
}: Receipt | FollowUpProgress): Row[] {
  const by = delivery.confirmedBy === null ? '' : ` by ${delivery.confirmedBy}`;
  const counts = Object.entries(responseCounts).map(([name, count]) => `${name} × ${count}`);
  return [
    ['delivery', `${delivery.verdict}${by}, ${counted(delivery.sends, 'send')}`],
    ['evidence', evidence ?? 'none'],
    ['polls', counts.length === 0 ? String(polls) : `${polls} (${counts.join(', ')})`],
  ];
}

/** Where a follow-up stands, as one line. */
export function progressText(progress: FollowUpProgress, now: number, decide: string): string {
  const { phase, polls, nextPollAt, deadlineAt, evidence, delivery } = progress;
  const { verdict, confirmedBy } = delivery;
  const isSent = verdict !== 'not-sent';
  const by = confirmedBy === null || confirmedBy === 'response' ? '' : ` (by ${confirmedBy})`;
  const parts = [
    phase,
    phase === 'needs-decision' && `did the message arrive? ${decide}`,
    answerText(progress),
    polls > 0 && `poll ${polls}`,
    nextPollAt !== null && `${isSent ? 'next' : 'next try'} ${inTime(nextPollAt, now)}`,
    isSent && `${verdict === 'unknown' ? 'delivery' : 'message'} ${verdict}${by}`,
    evidence,
    `deadline ${inTime(deadlineAt, now)}`,
  ];
  return parts.filter(Boolean).join(' · ');
}

/** Changes with anything but the passing of time. */
export function progressKey(progress: FollowUpProgress): string {
  return JSON.stringify({ ...progress, polls: 0, responseCounts: {}, nextPollAt: null });
}

function answerText({ job, lastResponse, delivery }: FollowUpProgress): string | null {
  if (lastResponse === null || lastResponse === job?.status) return lastResponse;
  // Anything but a status is trouble on the way to the service.
  if (delivery.verdict === 'not-sent' && delivery.sends === 0) return `${lastResponse}; nothing sent yet`;
  return job === null ? lastResponse : `${lastResponse} (job was ${job.status})`;
}

function inTime(at: string, now: number): string {
  const ms = Date.parse(at) - now;
  return ms <= 0 ? 'now' : `in ${formatDuration(Math.ceil(ms / 1_000) * 1_000)}`;
}

export function progressRows(session: Session, workflowId: string, progress: FollowUpProgress): Row[] {
  const { job, nextPollAt, deadlineAt, lastResponse } = progress;
  const now = Date.now();
  return [
    ...phaseRows(progress, decideCommand(session, workflowId)),
    ...(job === null ? rowIf('status', 'not read yet') : jobRows(job)),
    ['last answer', lastResponse ?? 'none yet'],
    ...receiptRows(progress),
    // Not known while a running activity reads.
    ...rowIf('next read', nextPollAt && `${nextPollAt} (${inTime(nextPollAt, now)})`),
    ['deadline', `${deadlineAt} (${inTime(deadlineAt, now)})`],
    ['workflow', workflowId],
  ];
}

export function decideCommand(session: Session, workflowId: string): string {
  return `${session.command('resolve', workflowId, 'delivered')} (or not-delivered)`;
}

/** What the server knows while no worker answers. */
export function serverText(report: Extract<ProgressReport, { from: 'server' }>): string {
  const { phase, jobStatus, verdict, taskTrouble, taskQueue, beginsAt } = report.description;
  const hint = report.workers === 0 ? 'start one' : 'if this lasts, see whether one runs, and its log';
  const silence = `no worker answers on task queue ${taskQueue} (yet); ${hint}, nothing is lost`;
  const delay = beginsAt && `it has not begun; it begins at ${beginsAt}`;
  const delivery = verdict && `delivery ${verdict}`;
  return [taskTrouble ?? delay ?? silence, phase, jobStatus, delivery]
    .filter((word) => word !== null)
    .join(' · ');
}
