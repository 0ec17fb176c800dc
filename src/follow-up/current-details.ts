import { phaseRows } from '../core/result';
import { markdownCode as code, markdownCounts, markdownTable, markdownText } from '../core/text';
import { isoSecond, progressOf } from './receipt';
import type { FollowUpState } from './state';
import type { Step } from './step';

/** The current details of a follow-up: a small table for the Web UI, without the prompt. */
export function currentDetails(state: FollowUpState, step: Step): string {
  const { plan, job } = state;
  const isSending = step.do === 'send';
  const { phase, evidence, polls, responseCounts, lastResponse, deliveryUnknownReason, delivery } =
    progressOf(state, step, false);
  const prLink = job?.prLink ?? null;
  const reason = deliveryUnknownReason && markdownText(deliveryUnknownReason);
  const confirmedBy = delivery.confirmedBy === null ? '' : ` (by ${delivery.confirmedBy})`;
  const later = step.do === 'poll' ? '; the pending activity has the later reads' : '';
  const rows: (readonly [string, string])[] = [
    ...phaseRows({ phase, delivery, deliveryUnknownReason: reason }, HOW_TO_DECIDE),
    ['last response', (lastResponse === null ? 'none yet' : responseText(lastResponse)) + later],
    ['delivery', isSending ? 'open until the next send reports' : delivery.verdict + confirmedBy],
    ['evidence', evidence ?? 'none yet'],
    ['polls', String(polls) + later],
    ['responses', markdownCounts(responseCounts) + later],
    ['next read', 'at' in step ? isoSecond(step.at) + later : '-'],
    ['deadline', isoSecond(state.deadlineAt)],
    ['pull request', prLink === null ? 'none' : link(prLink)],
  ];
  const title = `**Follow-up ${code(plan.requestId)}** to job ${code(plan.jobId)} of project ${code(plan.projectId)}`;
  return `${title}\n\n${markdownTable(rows)}`;
}

const HOW_TO_DECIDE =
  'send the update `resolveDelivery` (More Actions) with `"delivered"` or `"not-delivered"`, or run `agent-follow-up resolve`';

function responseText(response: string): string {
  return /\s/.test(response) ? markdownText(response) : code(response);
}

function link(url: string): string {
  const safe = url.replace(/[<>|\\`\s]/g, (character) => encodeURIComponent(character));
  return `<${safe}>`;
}
