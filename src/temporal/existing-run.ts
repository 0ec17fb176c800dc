import {
  type Client,
  type WorkflowExecutionDescription,
  type WorkflowExecutionInfo,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { decodeFirst } from './sdk-internals';
import { checkRequest } from '../core/check-request';
import { isRecord, type JsonObject } from '../core/checks';
import { digestOf } from '../core/ids';
import { MEMO_PROMPT_DIGEST } from '../core/names';
import { type FollowUpPlan, optionTexts } from '../core/request';
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
export async function readOwnInput(
  client: Client,
  workflowId: string,
  runId: string,
): Promise<{ readonly input: unknown } | undefined> {
  const started = await startOf(client, workflowId, runId);
  if (!started) return undefined;
  return { input: await decodeFirst(client, started.input?.payloads, workflowId) };
}

async function startOf({ workflowService, options }: Client, workflowId: string, runId: string) {
  const execution = { workflowId, runId };
  const asked = { namespace: options.namespace, execution, maximumPageSize: 1 };
  try {
    const { history } = await workflowService.getWorkflowExecutionHistory(asked);
    return history?.events?.[0]?.workflowExecutionStartedEventAttributes;
  } catch (error) {
    if (hasGrpcStatus(error, 'NOT_FOUND')) return undefined;
    throw error;
  }
}

/** As {@link readOwnInput}, of the first run of its chain, which has the message. @returns {} where only that one is gone */
export async function readInput(
  client: Client,
  workflowId: string,
  runId: string,
): Promise<{ readonly input?: unknown } | undefined> {
  const started = await startOf(client, workflowId, runId);
  if (!started) return undefined;
  const { continuedExecutionRunId, firstExecutionRunId } = started;
  if (continuedExecutionRunId && firstExecutionRunId && firstExecutionRunId !== runId)
    return (await readInput(client, workflowId, firstExecutionRunId)) ?? {};
  return readOwnInput(client, workflowId, runId);
}

/**
 * Compares a request with the follow-up that has its name, by its input; by the digest in its memo where that can't be read.
 *
 * @returns `differences`: options of the existing follow-up that differ, in words; null where it carries another prompt
 */
export function compareRequests(wanted: FollowUpPlan, input: unknown, memo: JsonObject = {}) {
  const prompt = isRecord(input) ? input.prompt : undefined;
  const digest = typeof prompt === 'string' ? digestOf(prompt) : memo[MEMO_PROMPT_DIGEST];
  const promptCompared = typeof digest === 'string';
  if (promptCompared && digest !== digestOf(wanted.prompt)) return null;
  const existing = checkRequest(input);
  const asked = new Map(optionTexts(wanted));
  const differences = (existing.ok ? optionTexts(existing.plan) : [])
    .filter(([option, text]) => asked.get(option) !== text)
    .map(([option, text]) => `${option} is ${text} there, not ${asked.get(option) ?? ''}`);
  return { promptCompared, differences };
}

const ENDS = ['completed', 'failed', 'cancelled', 'terminated', 'timed-out'] as const;

export type RunState = 'running' | (typeof ENDS)[number];

/** A run that was continued as new goes on in the next one; a paused one has not ended. */
export function stateOf(status: WorkflowExecutionInfo['status']['name']): RunState {
  const words = status.toLowerCase().replace('_', '-');
  return ENDS.find((end) => end === words) ?? 'running';
}
