import {
  type Client,
  type WorkflowExecutionDescription,
  type WorkflowExecutionInfo,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { decodeFirstPayload } from './raw-requests';
import { isRecord } from '../contract/checks';
import { sha256Hex } from '../contract/ids';
import { MEMO_PROMPT_DIGEST } from '../contract/names';
import { eachConcurrently } from './each-concurrently';
import { hasGrpcStatus } from './grpc-status';
import { readProtoField } from './proto-field';
import { unsupportedServerError } from './server-version';

/** Describes a run of a workflow; null if it does not exist. @param runId undefined for the latest run */
export async function describeWorkflow(
  client: Pick<Client, 'workflow'>,
  workflowId: string,
  runId?: string,
): Promise<WorkflowExecutionDescription | null> {
  try {
    return await client.workflow.getHandle(workflowId, runId).describe();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

/**
 * Returns the ID of the first run in the chain of a run. In a chain, each run continues the run before it as new, or was made
 * by a reset.
 *
 * @throws FollowUpError `UNSUPPORTED_SERVER` if the Temporal server does not return the ID. The function must not return another ID
 *   instead: with another ID, a follow-up that holds a job lock would look as if it had ended.
 */
export function getFirstRunId({ raw }: Pick<WorkflowExecutionDescription, 'raw'>): string {
  const firstRunId = readProtoField(raw.workflowExecutionInfo?.firstRunId);
  if (firstRunId !== undefined) return firstRunId;
  throw unsupportedServerError('does not return the first run ID of a workflow');
}

/** Ignores the error of a cancellation or a termination whose workflow has already ended. @throws every other error */
export function ignoreClosedWorkflow(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

/** Cancels workflows. Workflows that have already ended do not change. */
export async function cancelWorkflows(client: Client, workflowIds: Iterable<string>): Promise<void> {
  await eachConcurrently(workflowIds, async (workflowId) => {
    await client.workflow.getHandle(workflowId).cancel().catch(ignoreClosedWorkflow);
  });
}

/**
 * Reads the input of a run.
 *
 * @param runId an empty string for the latest run
 * @returns undefined if the run's history no longer exists
 */
export async function readRunInput(
  client: Client,
  workflowId: string,
  runId: string,
): Promise<{ readonly input: unknown } | undefined> {
  const { workflowService, options } = client;
  const request = { namespace: options.namespace, execution: { workflowId, runId }, maximumPageSize: 1 };
  const { history } = await workflowService.getWorkflowExecutionHistory(request).catch((error: unknown) => {
    if (hasGrpcStatus(error, 'NOT_FOUND')) return { history: null };
    throw error;
  });
  const started = history?.events?.[0]?.workflowExecutionStartedEventAttributes;
  if (!started) return undefined;
  return { input: await decodeFirstPayload(client, started.input?.payloads, workflowId) };
}

/** Returns the digest of a follow-up's prompt from the memo, or otherwise from the input. Undefined if neither has the prompt. */
export async function readPromptDigest(
  client: Client,
  { memo, workflowId, runId }: Pick<WorkflowExecutionDescription, 'memo' | 'workflowId' | 'runId'>,
): Promise<string | undefined> {
  const storedDigest = memo?.[MEMO_PROMPT_DIGEST];
  if (typeof storedDigest === 'string') return storedDigest;
  const run = await readRunInput(client, workflowId, runId);
  // The workflow is being deleted. The Temporal server deletes the description last.
  if (run === undefined) throw new WorkflowNotFoundError('its history no longer exists', workflowId, runId);
  const { prompt, continued } = isRecord(run.input) ? run.input : {};
  if (typeof prompt === 'string') return sha256Hex(prompt);
  // A run that continues another run has only the digest.
  const digest = isRecord(continued) ? continued.promptDigest : undefined;
  return typeof digest === 'string' ? digest : undefined;
}

const CLOSED_STATES = ['completed', 'failed', 'cancelled', 'terminated', 'timed-out'] as const;

export type RunState = 'running' | (typeof CLOSED_STATES)[number];

/** Converts a status. A paused run is `running`, and so is a run that ended because it continued as new. */
export function toRunState(status: WorkflowExecutionInfo['status']['name']): RunState {
  const stateText = status.toLowerCase().replace('_', '-');
  return CLOSED_STATES.find((end) => end === stateText) ?? 'running';
}
