import { phaseRows } from '../contract/result';
import { markdownCode as code, markdownCounts, markdownTable, markdownText } from '../contract/text';
import { formatDuration } from '../contract/duration';
import { isoSecond, lastResponseText, toFollowUpProgress } from './receipt';
import type { FollowUpState } from './state';
import type { Step } from './step';

/* This file has the texts about a running follow-up in the Temporal Web UI. No text contains the prompt. */

/** Returns the summary of the timer before a step: the latest response and the time until the next request. */
export function waitSummary(state: FollowUpState, step: Step & { at: number }, now: number): string {
  const polls = state.polls === 0 ? '' : `, poll ${state.polls}`;
  const response = lastResponseText(state) ?? 'no response yet';
  const next = step.do === 'send' ? 'next try' : 'next read';
  return `${step.phase}${polls}: ${response}, ${next} in ${formatDuration(step.at - now)}`;
}

/** Returns the summary of an activity. */
export function activitySummary({ polls, sends, waitingForJob }: FollowUpState, step: Step): string {
  switch (step.do) {
    case 'send':
      return `read the job, then send the message${sends === 0 ? '' : ` (POST ${sends + 1})`}`;
    case 'poll':
      return `poll ${polls + 1} and later polls, while the job is ${step.lastState.status}`;
    default:
      return waitingForJob === null ? `poll ${polls + 1}` : 'read the job, to find out whether it is idle';
  }
}

/** Returns the current details of the workflow as a Markdown table. */
export function currentDetails(state: FollowUpState, step: Step): string {
  const { plan, job } = state;
  const isSending = step.do === 'send';
  const { phase, evidence, polls, responseCounts, lastResponse, deliveryUnknownReason, delivery } =
    toFollowUpProgress(state, step, false);
  const prLink = job?.prLink ?? null;
  const reason = deliveryUnknownReason && markdownText(deliveryUnknownReason);
  const confirmedBy = delivery.confirmedBy === null ? '' : ` (by ${delivery.confirmedBy})`;
  const laterReadsNote = step.do === 'poll' ? '; later reads are in the pending activity' : '';
  const rows: (readonly [string, string])[] = [
    ...phaseRows({ phase, job, delivery, deliveryUnknownReason: reason }, HOW_TO_DECIDE),
    ['last response', (lastResponse === null ? 'none yet' : responseText(lastResponse)) + laterReadsNote],
    [
      'delivery',
      isSending
        ? `${delivery.verdict} until the send starts, then not known until it has ended`
        : delivery.verdict + confirmedBy,
    ],
    ['evidence', evidence ?? 'none yet'],
    ['polls', String(polls) + laterReadsNote],
    ['responses', markdownCounts(responseCounts) + laterReadsNote],
    ['next read', 'at' in step ? isoSecond(step.at) + laterReadsNote : '-'],
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
