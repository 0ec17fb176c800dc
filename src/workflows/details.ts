import { markdownCode as code, markdownTable } from '../contract/markdown';
import { type FollowUpState, receiptOf } from './state';

/**
 * The current details of a follow-up: a small Markdown table for the Web UI, without the prompt.
 *
 * @param polling a pending activity polls by itself: what it has counted stands in its heartbeat details
 */
export function currentDetails(state: FollowUpState, polling = false): string {
  const { plan, job, delivery } = state;
  const { polls, observed } = receiptOf(state, null);
  const prLink = job?.prLink ?? null;
  const rows: [string, string][] = [
    ['phase', state.phase],
    ['last answer', state.lastAnswer === null ? 'none yet' : code(state.lastAnswer)],
    ['delivery', delivery.verdict + (delivery.confirmedBy === null ? '' : ` (by ${delivery.confirmedBy})`)],
    ['evidence', state.evidence ?? 'none yet'],
    ['polls', polling ? `${polls}, and those of the pending activity` : String(polls)],
    ['observed', observedCounts(observed)],
    ['next read', nextRead(state.nextPollAt, polling)],
    ['deadline', isoSecond(state.deadlineAt)],
    ['pull request', prLink === null ? 'none' : link(prLink)],
  ];
  const title = `**Follow-up ${code(plan.requestId)}** to job ${code(plan.jobId)} of project ${code(plan.projectId)}`;
  return `${title}

${markdownTable(rows)}`;
}

function nextRead(at: number | null, polling: boolean): string {
  if (polling) return 'by the pending activity';
  return at === null ? '-' : isoSecond(at);
}

function observedCounts(observed: Readonly<Record<string, number>>): string {
  const counts = Object.entries(observed).map(([name, count]) => `${code(name)} × ${count}`);
  return counts.length === 0 ? '-' : counts.join(', ');
}

function link(url: string): string {
  const safe = url.replace(/[<>|\\`\s]/g, (character) => encodeURIComponent(character));
  return `<${safe}>`;
}

function isoSecond(at: number): string {
  return new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');
}
