import type { Client } from '@temporalio/client';
import { sha256Hex } from '../contract/ids';
import { type FollowUpPlan, optionTexts } from '../contract/request';
import { followUpStartOptions } from '../contract/follow-up-start-options';
import { markdownCode as code, markdownTable, utf8ByteLength } from '../contract/text';
import { withStartRequestId } from './raw-requests';

/** Returns the options with which a client or a batch starts a follow-up. */
export function startOptions(plan: FollowUpPlan, batchId?: string) {
  return {
    ...followUpStartOptions(plan, batchId),
    // With FAIL, the response shows whether the start created a new run. If the connection repeats the call, the Temporal server
    // recognizes the same start and reports no conflict.
    workflowIdConflictPolicy: 'FAIL',
    staticDetails: staticDetails(plan, batchId),
  } as const;
}

/** The options of a retry, which starts another run of a follow-up. */
export const RETRY_OPTIONS = { workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY' } as const;

/**
 * Returns the client that starts a retry. Temporal's request ID of the start (not the `requestId` of the follow-up) contains the ID of
 * the retried run. Two retries of the same run therefore create only one new run, even if the new run has already ended.
 *
 * @param runId the run that is retried
 */
export function retryClient(client: Client, runId: string): Client {
  return withStartRequestId(client, `retry of ${runId}`);
}

/** Returns the details for the Web UI, in Markdown. The details have the prompt's size and digest, but never its text. */
export function staticDetails(plan: FollowUpPlan, batchId?: string): string {
  const { projectId, jobId, requestId, prompt } = plan;
  return markdownTable([
    ['projectId', code(projectId)],
    ['jobId', code(jobId)],
    ['requestId', code(requestId)],
    ...(batchId === undefined ? [] : [['batch', code(batchId)] as const]),
    // Twelve digits are enough to distinguish two prompts by eye.
    ['prompt', `${utf8ByteLength(prompt)} bytes, sha256 ${code(sha256Hex(prompt).slice(0, 12))}…`],
    ...optionTexts(plan),
  ]);
}
