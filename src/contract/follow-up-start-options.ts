import { sha256Hex, followUpWorkflowId } from './ids';
import { type KeywordName, MEMO_PROMPT_DIGEST } from './names';
import type { FollowUpRequest } from './request';
import type { Verdict } from './result';
import { markdownCode, MAX_ATTRIBUTE_CHARACTERS, truncate } from './text';

export function keywordAttributeKey(name: KeywordName) {
  return { name, type: 'KEYWORD' as const };
}

/** A search attribute: a longer text can end a workflow (measured). */
export function keywordAttribute(name: KeywordName, text: string) {
  return { key: keywordAttributeKey(name), value: truncate(text, MAX_ATTRIBUTE_CHARACTERS) };
}

export const OUTCOME_KEY = { name: 'FollowUpOutcome', type: 'KEYWORD_LIST' } as const;

/** The search attribute `FollowUpOutcome`, such as `["DeliveryUnknown", "unknown"]`. */
export function outcomeAttribute(outcome: string, verdict: Verdict) {
  return { key: OUTCOME_KEY, value: [truncate(outcome, MAX_ATTRIBUTE_CHARACTERS), verdict] };
}

type RequestWithId = Pick<FollowUpRequest, 'projectId' | 'jobId' | 'prompt'> & { readonly requestId: string };

/** What every start of a follow-up carries, by a client, a batch or another workflow. A second start never sends. */
export function followUpStartOptions(request: RequestWithId, batchId?: string) {
  const { projectId, jobId, requestId, prompt } = request;
  return {
    workflowId: followUpWorkflowId(projectId, jobId, requestId),
    workflowIdReusePolicy: 'REJECT_DUPLICATE' as const,
    memo: { [MEMO_PROMPT_DIGEST]: sha256Hex(prompt) },
    typedSearchAttributes: [
      // What the workflow would set first: this saves an event.
      keywordAttribute('FollowUpPhase', 'starting'),
      keywordAttribute('AgentProject', projectId),
      keywordAttribute('AgentJob', jobId),
      ...(batchId === undefined ? [] : [keywordAttribute('FollowUpBatch', batchId)]),
    ],
    // Without the prompt. The server takes 400 bytes; the names fill at most the 255 bytes of a workflow id.
    staticSummary: `Follow-up to job ${markdownCode(jobId)} of project ${markdownCode(projectId)}`,
  };
}
