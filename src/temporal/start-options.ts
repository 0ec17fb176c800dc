import { sha256Hex } from '../contract/ids';
import { type FollowUpPlan, optionTexts } from '../contract/request';
import { followUpStartOptions } from '../contract/follow-up-start-options';
import { markdownCode as code, markdownTable, utf8ByteLength } from '../contract/text';
import { startOnceOptions } from './sdk-internals';

/** The options of a follow-up's start by a client, in a batch or not. */
export function startOptions(plan: FollowUpPlan, batchId?: string) {
  return {
    ...followUpStartOptions(plan, batchId),
    // Tells a new run from one that exists. A repeated call of the SDK's is still the same start.
    workflowIdConflictPolicy: 'FAIL',
    staticDetails: staticDetails(plan, batchId),
  } as const;
}

/**
 * The options with which a follow-up gets another run. Two retries make one run, even if that has ended meanwhile: the start's
 * request id is made of the run that is retried.
 */
export function retryOptions(runId: string) {
  return {
    ...startOnceOptions(`retry of ${runId}`),
    workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY',
  } as const;
}

/** For the Web UI. The prompt is described, never shown. */
export function staticDetails(plan: FollowUpPlan, batchId?: string): string {
  const { projectId, jobId, requestId, prompt } = plan;
  return markdownTable([
    ['projectId', code(projectId)],
    ['jobId', code(jobId)],
    ['requestId', code(requestId)],
    ...(batchId === undefined ? [] : [['batch', code(batchId)] as const]),
    // Enough of the digest to tell two prompts apart by eye.
    ['prompt', `${utf8ByteLength(prompt)} bytes, sha256 ${code(sha256Hex(prompt).slice(0, 12))}…`],
    ...optionTexts(plan),
  ]);
}
