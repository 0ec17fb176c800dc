import type { SearchAttributePair } from '@temporalio/common';
import { MAX_ATTRIBUTE_CHARACTERS, truncate } from '../contract/bounds';
import { markdownCode as code, markdownTable } from '../contract/markdown';
import type { FollowUpPlan } from '../contract/request';
import { optionTexts } from '../contract/request-options';
import { followUpAttributes } from '../contract/start-words';
import { promptDigest } from './same-request';
import { keywordKey } from './description';

/** The options of a follow-up, as the Web UI shows them from its start on. The prompt is described, never shown. */
export function staticDetails(plan: FollowUpPlan): string {
  const rows: [string, string][] = [
    ['projectId', code(plan.projectId)],
    ['jobId', code(plan.jobId)],
    ['requestId', code(plan.requestId)],
    ['prompt', describePrompt(plan.prompt)],
    ...optionTexts(plan),
  ];
  return markdownTable(rows);
}

/** The attributes with which a follow-up is started. */
export function startAttributes(plan: FollowUpPlan): SearchAttributePair[] {
  return followUpAttributes(plan).map(([name, text]) => ({ key: keywordKey(name), value: attribute(text) }));
}

/** A text as a search attribute holds it. */
export function attribute(text: string): string {
  return truncate(text, MAX_ATTRIBUTE_CHARACTERS);
}

/** Enough of the digest to tell two prompts apart by eye. */
function describePrompt(prompt: string): string {
  return `${Buffer.byteLength(prompt)} bytes, sha256 ${code(promptDigest(prompt).slice(0, 12))}…`;
}
