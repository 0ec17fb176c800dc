import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { checkRequest } from '../contract/check-request';
import { describeConflict, describeReceipt } from '../contract/outcome';
import { FollowUpError } from '../contract/follow-up-error';
import { followUpWorkflowId, sha256Hex } from '../contract/ids';
import { FOLLOW_UP_WORKFLOW, MEMO_START_DELAY } from '../contract/names';
import type { FollowUpPlan, FollowUpRequest } from '../contract/request';
import { canRetry, type Receipt } from '../contract/result';
import { keywordAttributeKey } from '../contract/follow-up-start-options';
import type { DurationText } from '../contract/duration';
import { getFirstRunId, readPromptDigest, readRunInput } from '../temporal/workflow-executions';
import { RETRY_OPTIONS, retryClient, startOptions } from '../temporal/start-options';
import type { CallOptions } from './call-runner';
import { findFollowUp } from './description';
import {
  ConflictError,
  InvalidRequestError,
  type CallState,
  retriedAlreadyError,
  retryNotAllowedError,
  wrongStateError,
} from './errors';
import { awaitResult } from './await-result';
import { describeNamedRun, MAX_DESCRIPTION_AGE_MS, type NamedRun } from './named-run';
import { checkDuration, checkName, type OptionChecks, durationProblem } from './options';

/** A request with a `requestId`. Without a `requestId`, a repeated start would send the message twice. */
export type NamedRequest = FollowUpRequest & { readonly requestId: string };

export interface StartOptions extends CallOptions {
  /** The time for which the Temporal server delays the follow-up. The deadline counts from the end of this delay. @default none */
  readonly startDelay?: DurationText | undefined;
}

/** The checks of the options besides those of every call. */
export const START_CHECKS: OptionChecks<Omit<StartOptions, keyof CallOptions>> = {
  startDelay: durationProblem,
};

export interface FollowUpStartResult {
  readonly workflowId: string;
  readonly requestId: string;
  /** The run that was started, or the run to which the call attached. A later retry has another run ID. */
  readonly runId: string;
  /** False if this call started the follow-up; otherwise the state of the existing follow-up, which keeps its options. */
  readonly attached: false | 'running' | 'ended';
  /** False if the existing follow-up's prompt is no longer stored and was therefore not compared. */
  readonly promptCompared: boolean;
}

/**
 * Returns the workflow ID `follow-up:{projectId}:{jobId}:{requestId}` with each part percent-encoded. A part that is a UUID is in
 * lower case.
 *
 * @throws InvalidRequestError if a part is not a non-empty, well-formed string
 */
export function checkedWorkflowId(projectId: string, jobId: string, requestId: string): string {
  for (const [field, value] of Object.entries({ projectId, jobId, requestId })) checkName(field, value);
  return followUpWorkflowId(projectId, jobId, requestId);
}

/** Checks a request. @throws InvalidRequestError with every problem of the request */
export function planFromRequest(request: unknown, workflowId?: string): FollowUpPlan {
  const checked = checkRequest(request, workflowId);
  if (!checked.ok) throw new InvalidRequestError(checked.problems);
  return checked.plan;
}

export async function startFollowUp(
  client: Client,
  taskQueue: string,
  request: NamedRequest,
  { startDelay, callState = {} }: Pick<StartOptions, 'startDelay'> & { readonly callState?: CallState } = {},
): Promise<FollowUpStartResult> {
  const plan = planFromRequest(request);
  const delayMs = parseStartDelay(startDelay);
  const { requestId } = plan;
  const start = startOptions(plan);
  const { workflowId } = start;
  callState.workflowId = workflowId;
  try {
    const { firstExecutionRunId: runId } = await client.workflow.start(FOLLOW_UP_WORKFLOW, {
      ...start,
      taskQueue,
      args: [request],
      ...(delayMs > 0 && { startDelay: delayMs, memo: { ...start.memo, [MEMO_START_DELAY]: delayMs } }),
    });
    callState.unconfirmedStart = undefined;
    return { workflowId, requestId, runId, attached: false, promptCompared: true };
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
  callState.unconfirmedStart = undefined;
  const existing = await findFollowUp(client, { workflowId });
  const digest = await readPromptDigest(client, existing);
  if (digest !== undefined && digest !== sha256Hex(plan.prompt))
    throw new ConflictError('CONFLICT', describeConflict(workflowId), { workflowId });
  const runId = getFirstRunId(existing);
  const { closeTime } = existing;
  // A paused follow-up has no close time, because it has not ended.
  const attached = closeTime === undefined ? 'running' : 'ended';
  return { workflowId, requestId, runId, attached, promptCompared: digest !== undefined };
}

/** @throws FollowUpError `RETRY_NOT_ALLOWED` unless the receipt proves that the message was not sent, or was rejected */
export function checkRetry(workflowId: string, receipt: Receipt | null): void {
  const verdict = receipt?.delivery.verdict;
  if (canRetry(verdict)) return;
  const reason = verdict === 'accepted' ? 'The message was accepted.' : describeReceipt(receipt);
  throw retryNotAllowedError(workflowId, reason, receipt);
}

/** Returns the start delay in milliseconds, 0 if it is undefined. @throws InvalidRequestError */
export function parseStartDelay(startDelay: DurationText | undefined): number {
  return startDelay === undefined ? 0 : checkDuration('startDelay', startDelay);
}

/** Starts another run of a follow-up whose named run has ended. @throws as `FollowUpHandle.retry` does */
export async function retryFollowUp(
  client: Client,
  named: NamedRun,
  signal: AbortSignal,
): Promise<{ readonly runId: string }> {
  // The start must follow within ten seconds of the description. After that time, another run may have sent the message and ended,
  // so the receipt may no longer be that of the latest run. docs/guarantees.md states the cases that this limit does not cover.
  const startBy = Date.now() + MAX_DESCRIPTION_AGE_MS;
  const latest = await findFollowUp(client, { workflowId: named.workflowId });
  const { workflowId, runId, taskQueue, closeTime, priority } = latest;
  if (closeTime === undefined) throw wrongStateError(workflowId, 'running');
  // Only the receipt of the latest run decides, because this run may have sent the message after the named run had ended.
  const isLatest = named.runId === undefined || (await describeNamedRun(client, named))?.runId === runId;
  if (!isLatest) throw retriedAlreadyError(workflowId, getFirstRunId(latest));
  const receipt = await readReceipt(client, { workflowId, runId }, signal);
  checkRetry(workflowId, receipt);
  const input = (await readRunInput(client, workflowId, runId))?.input;
  if (input === undefined)
    throw retryNotAllowedError(workflowId, 'The history, which has the message, was deleted.', receipt);
  const batchId = latest.typedSearchAttributes.get(keywordAttributeKey('FollowUpBatch'));
  signal.throwIfAborted();
  try {
    const { firstExecutionRunId } = await client.withDeadline(startBy, () =>
      retryClient(client, runId).workflow.start(FOLLOW_UP_WORKFLOW, {
        ...startOptions(planFromRequest(input, workflowId), batchId),
        ...RETRY_OPTIONS,
        workflowId,
        taskQueue,
        args: [input],
        ...(priority && { priority }),
      }),
    );
    return { runId: firstExecutionRunId };
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    // Since the description, another client or program has started a run, which may have ended in the meantime.
    const later = await findFollowUp(client, { workflowId });
    if (later.closeTime === undefined) throw wrongStateError(workflowId, 'running');
    throw retriedAlreadyError(workflowId, getFirstRunId(later));
  }
}

/** Returns the receipt of a run that has ended; null if the run has none. */
function readReceipt(client: Client, run: NamedRun, signal: AbortSignal): Promise<Receipt | null> {
  return awaitResult(client, run, signal).then(
    ({ receipt }) => receipt,
    (error: unknown) => {
      if (error instanceof FollowUpError) return error.receipt;
      throw error;
    },
  );
}
