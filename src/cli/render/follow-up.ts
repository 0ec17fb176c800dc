import type { AgentJob, FollowUpProgress, ProgressReport, Receipt } from '../../entries/client';
import type { NamedRun } from '../../client/named-run';
import { isKnownStatus } from '../../contract/job';
import { phaseRows } from '../../contract/result';
import { pluralize } from '../../contract/text';
import { formatDuration } from '../../contract/duration';
import type { Session } from '../session';
import type { Row } from './text';

const UNCHANGED_NOTE = 'no read showed a turn after the message, so check the job';

export function optionalRows(name: string, value: string | number | null | undefined): Row[] {
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
  const by = delivery.confirmedBy === null ? '' : ` (confirmed by ${delivery.confirmedBy})`;
  const counts = Object.entries(responseCounts).map(([name, count]) => `${name} × ${count}`);
  return [
    ['delivery', `${delivery.verdict}${by}, ${pluralize(delivery.sends, 'send')}`],
    ['evidence', evidence === 'unchanged' ? `${evidence} (${UNCHANGED_NOTE})` : (evidence ?? 'none')],
    ['polls', counts.length === 0 ? String(polls) : `${polls} (${counts.join(', ')})`],
  ];
}

/** Returns the progress of a follow-up as one line. @param decide the command that resolves an unknown delivery */
export function progressText(progress: FollowUpProgress, now: number, decide: string): string {
  const { phase, polls, nextPollAt, deadlineAt, evidence, delivery } = progress;
  const { verdict, confirmedBy } = delivery;
  const isSent = verdict !== 'not-sent';
  const by = confirmedBy === null || confirmedBy === 'response' ? '' : ` (by ${confirmedBy})`;
  const parts = [
    phase,
    phase === 'needs-decision' && `was the message delivered? run ${decide}`,
    lastResponseText(progress),
    polls > 0 && `poll ${polls}`,
    nextPollAt !== null && `${isSent ? 'next' : 'next try'} ${toRelativeTime(nextPollAt, now)}`,
    isSent && `${verdict === 'unknown' ? 'delivery' : 'message'} ${verdict}${by}`,
    evidence,
    `deadline ${toRelativeTime(deadlineAt, now)}`,
  ];
  return parts.filter(Boolean).join(' · ');
}

/** Returns a key that changes with every change except the counts and times of further polls. */
export function progressKey(progress: FollowUpProgress): string {
  return JSON.stringify({ ...progress, polls: 0, responseCounts: {}, nextPollAt: null });
}

function lastResponseText({ job, lastResponse, delivery }: FollowUpProgress): string | null {
  if (lastResponse === null) return null;
  if (lastResponse === job?.status)
    return isKnownStatus(lastResponse) ? lastResponse : `${lastResponse} (unknown status, check the job)`;
  // In the phase `confirming`, the text is the status and the time before which it is not accepted.
  if (job !== null && lastResponse.startsWith(`${job.status};`)) return lastResponse;
  // Any other text describes a failed request, the pending send or the job lock.
  if (delivery.verdict === 'not-sent' && delivery.sends === 0) return `${lastResponse}; nothing sent yet`;
  return job === null ? lastResponse : `${lastResponse} (job was ${job.status})`;
}

function toRelativeTime(at: string, now: number): string {
  const ms = Date.parse(at) - now;
  return ms <= 0 ? 'now' : `in ${formatDuration(Math.ceil(ms / 1_000) * 1_000)}`;
}

export function progressRows(session: Session, run: NamedRun, progress: FollowUpProgress): Row[] {
  const { job, nextPollAt, deadlineAt, lastResponse } = progress;
  const now = Date.now();
  return [
    ...phaseRows(progress, decideCommand(session, run)),
    ...(job === null ? optionalRows('status', 'not read yet') : jobRows(job)),
    ['last response', lastResponse ?? 'none yet'],
    ...receiptRows(progress),
    // The time is null while an attempt reads the job, and while the activity is paused.
    ...optionalRows('next read', nextPollAt && `${nextPollAt} (${toRelativeTime(nextPollAt, now)})`),
    ['deadline', `${deadlineAt} (${toRelativeTime(deadlineAt, now)})`],
    ...runRows(run),
  ];
}

/** Returns the rows with the IDs of a run. The run ID is undefined if the latest run is meant. */
export function runRows({ workflowId, runId }: NamedRun): Row[] {
  return [['workflow', workflowId], ...optionalRows('run', runId)];
}

/** Returns the command that decides about a run. Without the run ID, the command could decide about a later run. */
export function decideCommand(session: Session, { workflowId, runId }: NamedRun): string {
  const run = runId === undefined ? [] : ['--run-id', runId];
  return `${session.command('resolve', ...run, workflowId, 'delivered')} (or not-delivered)`;
}

/** Returns the status of a follow-up that only the Temporal server reports, because no worker has responded. */
export function serverText(report: Extract<ProgressReport, { from: 'server' }>): string {
  const { phase, jobStatus, verdict, workflowTaskFailure, taskQueue, startsAt } = report.description;
  const hint =
    report.workers === 0 ? 'start a worker' : 'if this lasts, check that a worker runs, and read its log';
  const noWorkerText = `no worker has responded on task queue ${taskQueue} yet; ${hint}; the follow-up continues as soon as a worker runs`;
  const delay = startsAt && `the follow-up has not started; it starts at ${startsAt}`;
  const delivery = verdict && `delivery ${verdict}`;
  return [workflowTaskFailure ?? delay ?? noWorkerText, phase, jobStatus, delivery]
    .filter((word) => word !== null)
    .join(' · ');
}
