import type { SearchAttributePair } from '@temporalio/common';
import { MAX_ATTRIBUTE_CHARACTERS, truncate } from '../contract/bounds';
import { formatDuration } from '../contract/duration';
import { markdownCode as code, markdownTable } from '../contract/markdown';
import type { FollowUpPlan } from '../contract/request';
import { promptDigest } from './same-request';
import { keywordKey } from './description';

/**
 * What the Web UI shows of a follow-up from its start on. The prompt is described, never shown. The server takes 400 bytes
 * of summary; the names fill at most the 255 bytes of a workflow id.
 */
export function staticSummary({ projectId, jobId }: FollowUpPlan): string {
  return `Follow-up to job ${code(jobId)} of project ${code(projectId)}`;
}

export function staticDetails(plan: FollowUpPlan): string {
  const { polling } = plan;
  const rows: [string, string][] = [
    ['project', code(plan.projectId)],
    ['job', code(plan.jobId)],
    ['request', code(plan.requestId)],
    ['prompt', describePrompt(plan.prompt)],
    ['while the job is active', plan.whenActive],
    ['if the delivery stays unknown', plan.onUnknownDelivery],
    ['deadline', `${formatDuration(plan.deadlineMs)} after the start`],
    [
      'polling',
      `from ${formatDuration(polling.initialMs)} to ${formatDuration(polling.maximumMs)}, growth ${polling.growth}, jitter ${polling.jitter}`,
    ],
  ];
  return markdownTable(rows);
}

/** The attributes that a follow-up is found by before a worker has seen it. */
export function startAttributes({ projectId, jobId }: FollowUpPlan): SearchAttributePair[] {
  return [
    // As the workflow would set it first: one event less in every history.
    { key: keywordKey('FollowUpPhase'), value: 'baseline' },
    { key: keywordKey('AgentProject'), value: attribute(projectId) },
    { key: keywordKey('AgentJob'), value: attribute(jobId) },
  ];
}

/** A text as a search attribute holds it. */
export function attribute(text: string): string {
  return truncate(text, MAX_ATTRIBUTE_CHARACTERS);
}

/** Enough of the digest to tell two prompts apart by eye. */
function describePrompt(prompt: string): string {
  return `${Buffer.byteLength(prompt)} bytes, sha256 ${code(promptDigest(prompt).slice(0, 12))}…`;
}
