import { setCurrentDetails, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import type { SearchAttributeName } from '../../core/names';
import type { Phase } from '../../core/result';
import { markdownCode as code, markdownTable } from '../../core/text';
import { type Keyword, keyword } from '../keyword';
import { type FollowUpState, isoSecond, lastAnswerOf, receiptOf } from './state';

/**
 * What an operator sees of a follow-up in Temporal's Web UI: current details, which cost no event and follow every
 * answer, and search attributes, which cost one and are set on transitions only.
 */
export class Display {
  private readonly shown = new Map<string, string>();

  /** @param polling as in {@link currentDetails} */
  show(state: FollowUpState, polling: boolean): void {
    setCurrentDetails(currentDetails(state, polling));
    const { plan, phase, job } = state;
    const wanted: [SearchAttributeName, string | undefined][] = [
      ['FollowUpPhase', phase],
      ['AgentJobStatus', job?.status],
      ['AgentProject', plan.projectId],
      ['AgentJob', plan.jobId],
    ];
    const changes: Keyword[] = [];
    for (const [name, text] of wanted) {
      if (text === undefined || text === '') continue;
      const { key, value } = keyword(name, text);
      if (value === this.current(key)) continue;
      this.shown.set(key.name, value);
      changes.push({ key, value });
    }
    if (changes.length > 0) upsertSearchAttributes(changes);
  }

  /** What the server has: set by this run, or by the caller at the start. */
  private current(key: Keyword['key']): string | undefined {
    return this.shown.get(key.name) ?? workflowInfo().typedSearchAttributes.get(key);
  }
}

/** Marks a follow-up whose input was no request, so that a filter by phase finds it. */
export function showInvalid(): void {
  const phase: Phase = 'failed';
  upsertSearchAttributes([keyword('FollowUpPhase', phase)]);
}

/**
 * The current details of a follow-up: a small Markdown table for the Web UI, without the prompt.
 *
 * @param polling a pending activity polls by itself: what it has counted stands in its heartbeat details
 */
export function currentDetails(state: FollowUpState, polling = false): string {
  const { plan, job, delivery } = state;
  const { polls, observed } = receiptOf(state, null);
  const lastAnswer = lastAnswerOf(state);
  const prLink = job?.prLink ?? null;
  const rows: [string, string][] = [
    ['phase', state.phase],
    ['last answer', lastAnswer === null ? 'none yet' : code(lastAnswer)],
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
