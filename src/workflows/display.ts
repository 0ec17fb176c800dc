import { defineSearchAttributeKey, type SearchAttributePair } from '@temporalio/common';
import { setCurrentDetails, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import { MAX_ATTRIBUTE_CHARACTERS, truncate } from '../contract/bounds';
import type { SearchAttributeName } from '../contract/names';
import type { Phase } from '../contract/progress';
import { currentDetails } from './details';
import type { FollowUpState } from './state';

/**
 * What an operator sees of a follow-up in Temporal's Web UI: current details, which cost no event and follow every
 * answer, and search attributes, which cost one and are set on transitions only.
 */
export class Display {
  private readonly shown = new Map<SearchAttributeName, string>();

  /** @param patient as in {@link currentDetails} */
  show(state: FollowUpState, patient: boolean): void {
    setCurrentDetails(currentDetails(state, patient));
    const { plan, phase, job } = state;
    const wanted: [SearchAttributeName, string | undefined][] = [
      ['FollowUpPhase', phase],
      ['AgentJobStatus', job?.status],
      ['AgentProject', plan.projectId],
      ['AgentJob', plan.jobId],
    ];
    const changes: SearchAttributePair[] = [];
    for (const [name, text] of wanted) {
      const value = text === undefined || text === '' ? undefined : truncate(text, MAX_ATTRIBUTE_CHARACTERS);
      if (value === undefined || value === this.current(name)) continue;
      this.shown.set(name, value);
      changes.push({ key: defineSearchAttributeKey(name, 'KEYWORD'), value });
    }
    if (changes.length > 0) upsertSearchAttributes(changes);
  }

  /** What the server has: set by this run, or by the caller at the start. */
  private current(name: SearchAttributeName): string | undefined {
    const key = defineSearchAttributeKey(name, 'KEYWORD');
    return this.shown.get(name) ?? workflowInfo().typedSearchAttributes.get(key);
  }
}

/** Marks a follow-up whose input was no request, so that a filter by phase finds it. */
export function showInvalid(): void {
  const phase: Phase = 'failed';
  upsertSearchAttributes([{ key: defineSearchAttributeKey('FollowUpPhase', 'KEYWORD'), value: phase }]);
}
