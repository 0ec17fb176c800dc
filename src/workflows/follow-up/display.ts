import { phaseRows } from '../../core/result';
import { markdownCode as code, markdownCounts, markdownTable, markdownText } from '../../core/text';
import { type FollowUpState, isoSecond, progressOf } from './state';

/**
 * The current details of a follow-up: a small table for the Web UI, without the prompt.
 *
 * @param polling a pending activity polls by itself: what it has counted stands in its heartbeat details
 */
export function currentDetails(state: FollowUpState, polling = false): string {
  const { plan, job } = state;
  const { phase, delivery, doubt, polls, observed, lastAnswer } = progressOf(state);
  const prLink = job?.prLink ?? null;
  const at = state.nextPollAt;
  const later = polling ? '; later ones are in the heartbeat of the pending activity' : '';
  const rows: (readonly [string, string])[] = [
    ...phaseRows({ phase, delivery, doubt: doubt && markdownText(doubt) }, DECIDE),
    ['last answer', (lastAnswer === null ? 'none yet' : answerText(lastAnswer)) + later],
    ['delivery', delivery.verdict + (delivery.confirmedBy === null ? '' : ` (by ${delivery.confirmedBy})`)],
    ['evidence', state.evidence ?? 'none yet'],
    ['polls', polling ? `${polls}, and those of the pending activity` : String(polls)],
    ['observed', markdownCounts(observed) + later],
    ['next read', polling ? 'by the pending activity' : at === null ? '-' : isoSecond(at)],
    ['deadline', isoSecond(state.deadlineAt)],
    ['pull request', prLink === null ? 'none' : link(prLink)],
  ];
  const title = `**Follow-up ${code(plan.requestId)}** to job ${code(plan.jobId)} of project ${code(plan.projectId)}`;
  return `${title}\n\n${markdownTable(rows)}`;
}

const DECIDE =
  'send the update `resolveDelivery` (More Actions) with `"delivered"` or `"not-delivered"`, or run the starter\'s `resolve`';

function answerText(answer: string): string {
  return /\s/.test(answer) ? markdownText(answer) : code(answer);
}

function link(url: string): string {
  const safe = url.replace(/[<>|\\`\s]/g, (character) => encodeURIComponent(character));
  return `<${safe}>`;
}
