import {
  type Client,
  type WorkflowExecutionDescription,
  type WorkflowExecutionInfo,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { decodeFirstPayload } from './sdk-internals';
import { isRecord } from '../contract/checks';
import { sha256Hex } from '../contract/ids';
import { MEMO_PROMPT_DIGEST } from '../contract/names';
import { eachConcurrently } from './each-concurrently';
import { hasGrpcStatus } from './grpc-status';

export async function describeWorkflow(
  client: Pick<Client, 'workflow'>,
  workflowId: string,
): Promise<WorkflowExecutionDescription | null> {
  try {
    return await client.workflow.getHandle(workflowId).describe();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

/** The run with which the chain of continued-as-new runs began. */
export function getFirstRunId({ raw, runId }: WorkflowExecutionDescription): string {
  return raw.workflowExecutionInfo?.firstRunId ?? runId;
}

/** For a signal or a cancellation that comes too late. */
export function ignoreClosedWorkflow(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

/** Those that have ended stay as they are. */
export async function cancelWorkflows(client: Client, workflowIds: Iterable<string>): Promise<void> {
  await eachConcurrently(workflowIds, async (workflowId) => {
    await client.workflow.getHandle(workflowId).cancel().catch(ignoreClosedWorkflow);
  });
}

/** The input of a run, whatever it continues. @param runId empty for the latest run @returns undefined where it is gone */
export async function readRunInput(client: Client, workflowId: string, runId: string) {
  const { workflowService, options } = client;
  const request = { namespace: options.namespace, execution: { workflowId, runId }, maximumPageSize: 1 };
  const { history } = await workflowService.getWorkflowExecutionHistory(request).catch((error: unknown) => {
    if (hasGrpcStatus(error, 'NOT_FOUND')) return { history: null };
    throw error;
  });
  const started = history?.events?.[0]?.workflowExecutionStartedEventAttributes;
  if (!started) return undefined;
  const { input, continuedExecutionRunId, firstExecutionRunId } = started;
  const firstRunId = continuedExecutionRunId && firstExecutionRunId;
  return { input: await decodeFirstPayload(client, input?.payloads, workflowId), firstRunId };
}

/** As {@link readRunInput}, of the first run of its chain, which has the message. @returns {} where only that one is gone */
export async function readFirstRunInput(
  client: Client,
  workflowId: string,
  runId: string,
): Promise<{ readonly input?: unknown } | undefined> {
  const run = await readRunInput(client, workflowId, runId);
  return run?.firstRunId ? ((await readRunInput(client, workflowId, run.firstRunId)) ?? {}) : run;
}

/** Of the prompt of a follow-up, by its memo or else its input; undefined where neither tells it. */
export async function readPromptDigest(
  client: Client,
  { memo, workflowId, runId }: Pick<WorkflowExecutionDescription, 'memo' | 'workflowId' | 'runId'>,
): Promise<string | undefined> {
  const storedDigest = memo?.[MEMO_PROMPT_DIGEST];
  if (typeof storedDigest === 'string') return storedDigest;
  const run = await readFirstRunInput(client, workflowId, runId);
  // It is being deleted: the description goes last.
  if (run === undefined) throw new WorkflowNotFoundError('its history is gone', workflowId, runId);
  const { input } = run;
  return isRecord(input) && typeof input.prompt === 'string' ? sha256Hex(input.prompt) : undefined;
}

const CLOSED_STATES = ['completed', 'failed', 'cancelled', 'terminated', 'timed-out'] as const;

export type RunState = 'running' | (typeof CLOSED_STATES)[number];

/** A run that was continued as new goes on in the next one; a paused one has not ended. */
export function toRunState(status: WorkflowExecutionInfo['status']['name']): RunState {
  const stateText = status.toLowerCase().replace('_', '-');
  return CLOSED_STATES.find((end) => end === stateText) ?? 'running';
}
