import { canonicalId, sha256Hex, followUpWorkflowId } from './ids';
import { type KeywordName, MEMO_PROMPT_DIGEST } from './names';
import type { FollowUpRequest } from './request';
import type { Evidence, Verdict } from './result';
import { markdownCode, MAX_ATTRIBUTE_CHARACTERS, truncate } from './text';

export function keywordAttributeKey(name: KeywordName) {
  return { name, type: 'KEYWORD' as const };
}

/**
 * Creates a search attribute. The text is truncated, because Temporal's SQL schemas limit a value to 255 characters, and a longer
 * value can end a workflow. The agent service's IDs are in their canonical form, so that a query finds every spelling of an ID.
 */
export function keywordAttribute(name: KeywordName, text: string) {
  const isServiceId = name === 'AgentProject' || name === 'AgentJob';
  const value = truncate(isServiceId ? canonicalId(text) : text, MAX_ATTRIBUTE_CHARACTERS);
  return { key: keywordAttributeKey(name), value };
}

export const OUTCOME_KEY = { name: 'FollowUpOutcome', type: 'KEYWORD_LIST' } as const;

/**
 * Creates the search attribute `FollowUpOutcome`, such as `["DeliveryUnknown", "unknown"]` or
 * `["completed", "accepted", "unchanged"]`.
 *
 * @param evidence null if no terminal status was accepted
 */
export function outcomeAttribute(outcome: string, verdict: Verdict, evidence: Evidence | null) {
  const values = [
    truncate(outcome, MAX_ATTRIBUTE_CHARACTERS),
    verdict,
    ...(evidence === null ? [] : [evidence]),
  ];
  return { key: OUTCOME_KEY, value: values };
}

type RequestWithId = Pick<FollowUpRequest, 'projectId' | 'jobId' | 'prompt'> & { readonly requestId: string };

/**
 * Creates the options that every start of a follow-up has, whether a client, a batch or another workflow starts the follow-up.
 * While the Temporal server still has the follow-up, a second start with these options sends nothing.
 */
export function followUpStartOptions(request: RequestWithId, batchId?: string) {
  const { projectId, jobId, requestId, prompt } = request;
  return {
    workflowId: followUpWorkflowId(projectId, jobId, requestId),
    workflowIdReusePolicy: 'REJECT_DUPLICATE' as const,
    memo: { [MEMO_PROMPT_DIGEST]: sha256Hex(prompt) },
    typedSearchAttributes: [
      // The workflow would otherwise add an event to set these attributes.
      keywordAttribute('FollowUpPhase', 'starting'),
      keywordAttribute('AgentProject', projectId),
      keywordAttribute('AgentJob', jobId),
      ...(batchId === undefined ? [] : [keywordAttribute('FollowUpBatch', batchId)]),
    ],
    // The summary never contains the prompt. The Temporal server accepts 400 bytes. The two IDs together have fewer than 255
    // bytes, because both are part of the workflow ID.
    staticSummary: `Follow-up to job ${markdownCode(jobId)} of project ${markdownCode(projectId)}`,
  };
}
