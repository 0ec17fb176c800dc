import { createHash } from 'node:crypto';
import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import { decodeFromPayloadsAtIndex, workflowContext } from './sdk-internals';
import { checkRequest } from '../core/check-request';
import { MEMO_PROMPT_DIGEST } from '../core/names';
import type { FollowUpPlan } from '../core/request';
import { optionTexts } from '../core/request-options';
import { hasGrpcStatus } from './grpc-status';

export interface FirstEvent {
  readonly workflowType: string;
  /** The argument of the workflow, as its caller gave it. */
  readonly input: unknown;
  /** The run with which the chain of continued-as-new runs began. */
  readonly firstRunId: string;
}

/**
 * The event with which a run began; undefined where the run is gone, as runs are when the namespace's retention has
 * passed since their end.
 */
export async function readFirstEvent(
  client: Client,
  workflowId: string,
  runId: string,
): Promise<FirstEvent | undefined> {
  const { namespace, loadedDataConverter } = client.options;
  try {
    const { history } = await client.workflowService.getWorkflowExecutionHistory({
      namespace,
      execution: { workflowId, runId },
      maximumPageSize: 1,
    });
    const started = history?.events?.[0]?.workflowExecutionStartedEventAttributes;
    if (!started) return undefined;
    // As the SDK's own client decodes, so that payload codecs (encryption, compression) of the caller apply.
    const context = workflowContext(namespace, workflowId);
    const input = await decodeFromPayloadsAtIndex(loadedDataConverter, 0, started.input?.payloads, context);
    return {
      workflowType: started.workflowType?.name ?? '',
      input,
      firstRunId: started.firstExecutionRunId ?? runId,
    };
  } catch (error) {
    if (hasGrpcStatus(error, 'NOT_FOUND')) return undefined;
    throw error;
  }
}

type Comparison =
  /** `differences`: options that were asked for now and are not those of the existing follow-up, in words. */
  | { readonly samePrompt: true; readonly differences: readonly string[] }
  | { readonly samePrompt: false }
  /** The input of the existing follow-up can't be read. */
  | { readonly samePrompt: 'unknown' };

/** Compares a request with the input of the follow-up that has its name. Pure. */
export function compareRequests(wanted: FollowUpPlan, existingInput: unknown): Comparison {
  const existing = existingInput as { prompt?: unknown } | null | undefined;
  if (typeof existing !== 'object' || typeof existing?.prompt !== 'string') return { samePrompt: 'unknown' };
  if (existing.prompt !== wanted.prompt) return { samePrompt: false };
  const checked = checkRequest(existing);
  // An input that was refused has no options to compare: its follow-up ended as `InvalidRequest`.
  return { samePrompt: true, differences: checked.ok ? optionDifferences(wanted, checked.plan) : [] };
}

export function promptDigest(prompt: string): string {
  return createHash('sha256').update(prompt).digest('hex');
}

/** As {@link compareRequests}, by the memo alone: the options of the existing follow-up are not known by it. */
export function compareDigest(
  wanted: FollowUpPlan,
  memo: Readonly<Record<string, unknown>> | undefined,
): Comparison {
  const digest = memo?.[MEMO_PROMPT_DIGEST];
  if (typeof digest !== 'string') return { samePrompt: 'unknown' };
  return digest === promptDigest(wanted.prompt)
    ? { samePrompt: true, differences: [] }
    : { samePrompt: false };
}

function optionDifferences(wanted: FollowUpPlan, existing: FollowUpPlan): string[] {
  const asked = new Map(optionTexts(wanted));
  return optionTexts(existing)
    .filter(([option, text]) => asked.get(option) !== text)
    .map(([option, text]) => `${option} is ${text} there, not ${asked.get(option) ?? ''}`);
}

/** How a workflow stands, in the words of this project. */
export type RunState = 'running' | 'completed' | 'failed' | 'cancelled' | 'terminated' | 'timed-out';

export function stateOf(status: WorkflowExecutionInfo['status']['name']): RunState {
  switch (status) {
    case 'COMPLETED':
      return 'completed';
    case 'FAILED':
      return 'failed';
    case 'CANCELLED':
      return 'cancelled';
    case 'TERMINATED':
      return 'terminated';
    case 'TIMED_OUT':
      return 'timed-out';
    // A run that was continued as new goes on in the next one; a paused one has not ended.
    case 'RUNNING':
    case 'CONTINUED_AS_NEW':
    case 'PAUSED':
    case 'UNSPECIFIED':
    case 'UNKNOWN':
      return 'running';
  }
}
