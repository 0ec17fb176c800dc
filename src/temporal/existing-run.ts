import {
  type Client,
  type WorkflowExecutionDescription,
  type WorkflowExecutionInfo,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { decodeFirst } from './sdk-internals';
import { isRecord } from '../contract/checks';
import { digestOf } from '../contract/ids';
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
export function firstRunOf({ raw, runId }: WorkflowExecutionDescription): string {
  return raw.workflowExecutionInfo?.firstRunId ?? runId;
}

/** For a signal or a cancellation that comes too late. */
export function ignoreClosed(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

/** Those that have ended stay as they are. */
export async function cancelAll(client: Client, workflowIds: Iterable<string>): Promise<void> {
  await eachConcurrently(workflowIds, async (workflowId) => {
    await client.workflow.getHandle(workflowId).cancel().catch(ignoreClosed);
  });
}

/** The input of a run, whatever it continues. @param runId empty for the latest run @returns undefined where it is gone */
export async function readOwnInput(client: Client, workflowId: string, runId: string) {
  const { workflowService, options } = client;
  const asked = { namespace: options.namespace, execution: { workflowId, runId }, maximumPageSize: 1 };
  const { history } = await workflowService.getWorkflowExecutionHistory(asked).catch((error: unknown) => {
    if (hasGrpcStatus(error, 'NOT_FOUND')) return { history: null };
    throw error;
  });
  const started = history?.events?.[0]?.workflowExecutionStartedEventAttributes;
  if (!started) return undefined;
  const { input, continuedExecutionRunId, firstExecutionRunId } = started;
  const firstRunId = continuedExecutionRunId && firstExecutionRunId;
  return { input: await decodeFirst(client, input?.payloads, workflowId), firstRunId };
}

/** As {@link readOwnInput}, of the first run of its chain, which has the message. @returns {} where only that one is gone */
export async function readInput(
  client: Client,
  workflowId: string,
  runId: string,
): Promise<{ readonly input?: unknown } | undefined> {
  const own = await readOwnInput(client, workflowId, runId);
  return own?.firstRunId ? ((await readOwnInput(client, workflowId, own.firstRunId)) ?? {}) : own;
}

/** Of the prompt of a follow-up, by its memo or else its input; undefined where neither tells it. */
export async function promptDigestOf(
  client: Client,
  { memo, workflowId, runId }: Pick<WorkflowExecutionDescription, 'memo' | 'workflowId' | 'runId'>,
): Promise<string | undefined> {
  const kept = memo?.[MEMO_PROMPT_DIGEST];
  if (typeof kept === 'string') return kept;
  const run = await readInput(client, workflowId, runId);
  // It is being deleted: the description goes last.
  if (run === undefined) throw new WorkflowNotFoundError('its history is gone', workflowId, runId);
  const { input } = run;
  return isRecord(input) && typeof input.prompt === 'string' ? digestOf(input.prompt) : undefined;
}

const ENDS = ['completed', 'failed', 'cancelled', 'terminated', 'timed-out'] as const;

export type RunState = 'running' | (typeof ENDS)[number];

/** A run that was continued as new goes on in the next one; a paused one has not ended. */
export function stateOf(status: WorkflowExecutionInfo['status']['name']): RunState {
  const words = status.toLowerCase().replace('_', '-');
  return ENDS.find((end) => end === words) ?? 'running';
}
