import { setCurrentDetails, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import type { SearchAttributeName } from '../contract/names';
import type { Phase } from '../contract/progress';
import { currentDetails } from './details';
import { type Keyword, keyword } from './keyword';
import type { FollowUpState } from './state';

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
