/* Other workflow code uses these functions to run follow-ups as child workflows. A worker of this project must run. */
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  ChildWorkflowCancellationType,
  ChildWorkflowFailure,
  ParentClosePolicy,
  startChild,
  workflowInfo,
} from '@temporalio/workflow';
import type { FollowUpReference } from '../contract/activities';
import { checkRequest } from '../contract/check-request';
import { sha256Hex } from '../contract/ids';
import { DEFAULT_TASK_QUEUES, FOLLOW_UP_WORKFLOW } from '../contract/names';
import { problemTexts } from '../contract/checks';
import type { FollowUpRequest } from '../contract/request';
import type { FollowUpResult } from '../contract/result';
import { followUpStartOptions } from '../contract/follow-up-start-options';
import { serverCallProxy } from './activity-proxies';
import { areWorkflowsBundled } from './bundled';
import { nonRetryableError } from './non-retryable-error';

export interface ChildFollowUpOptions {
  /**
   * The task queue of the follow-ups' worker, for example `follow-up`. @default the task queue of the calling workflow if its
   * worker has the follow-up plugin; otherwise, this option is required
   */
  readonly taskQueue?: string | undefined;
}

export interface ChildFollowUp {
  readonly workflowId: string;
  /** Whether the follow-up existed already. If so, this start sent nothing. */
  readonly attached: boolean;
  /**
   * Waits for the end of the follow-up. If this wait is cancelled, the follow-up continues.
   *
   * @throws ApplicationFailure of a type in {@link FAILURE_TYPES}, or `FollowUpCancelled`, `FollowUpTerminated`, `FollowUpTimedOut`
   * or `FollowUpNotFound`. `FollowUpConflict` means that the existing follow-up has another prompt, or a prompt that can no
   * longer be compared. In the second case, it is unknown whether this message was sent. `FollowUpUnreadable` means that the
   * outcome can't be read. `details[0]` of each failure has the fields `job` and `receipt`, each null if it is not known. A
   * failure of a follow-up can also have `httpStatus` and `serviceMessage`.
   */
  result(): Promise<FollowUpResult>;
}

/**
 * Starts a follow-up as a child workflow, or attaches to the follow-up with the same `requestId`. The follow-up continues after
 * its parent has ended. To cancel the follow-up, use `getExternalWorkflowHandle(workflowId).cancel()`.
 *
 * @throws ApplicationFailure `InvalidRequest` with the problems, before anything is started. A missing `taskQueue` is such a problem if
 *   the worker of the calling workflow does not have the follow-up plugin
 */
export async function startFollowUp(
  request: FollowUpRequest & { readonly requestId: string },
  options: ChildFollowUpOptions = {},
): Promise<ChildFollowUp> {
  const taskQueue = toTaskQueue(options);
  const checked = checkRequest(request);
  if (!checked.ok)
    throw nonRetryableError('InvalidRequest', problemTexts(checked.problems), { job: null, receipt: null });
  const start = followUpStartOptions(checked.plan);
  const { workflowId } = start;
  const awaitExisting = () =>
    awaitExistingResult(taskQueue, { workflowId, promptDigest: sha256Hex(checked.plan.prompt) });
  const scope = CancellationScope.current();
  if (scope.consideredCancelled) await scope.cancelRequested;
  try {
    // The Temporal server drops a child's start if the parent ends before the start.
    const child = await CancellationScope.nonCancellable(() =>
      startChild(FOLLOW_UP_WORKFLOW, {
        ...start,
        taskQueue,
        args: [request],
        parentClosePolicy: ParentClosePolicy.ABANDON,
        cancellationType: ChildWorkflowCancellationType.ABANDON,
      }),
    );
    const result = () => awaitChildResult(child.result() as Promise<FollowUpResult>, awaitExisting);
    return { workflowId, attached: false, result };
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    return { workflowId, attached: true, result: awaitExisting };
  }
}

const NO_TASK_QUEUE =
  "taskQueue: is missing; set it to the task queue of the follow-ups' worker, for example " +
  `${JSON.stringify(DEFAULT_TASK_QUEUES.followUp)}, because the worker of this workflow does not have the follow-up plugin`;

/**
 * Returns the task queue of the follow-ups. The default is the task queue of the calling workflow, but only if its worker also
 * runs follow-ups. Otherwise, perhaps no worker for follow-ups polls this queue, and the follow-up would wait indefinitely.
 */
function toTaskQueue(options: ChildFollowUpOptions): string {
  const { taskQueue = areWorkflowsBundled() ? workflowInfo().taskQueue : undefined } = options;
  if (typeof taskQueue === 'string' && taskQueue !== '') return taskQueue;
  const text = taskQueue === undefined ? NO_TASK_QUEUE : 'taskQueue: must be a non-empty string';
  throw nonRetryableError('InvalidRequest', text, { job: null, receipt: null });
}

/** Starts a follow-up with `startFollowUp` and waits for its result. */
export async function executeFollowUp(...start: Parameters<typeof startFollowUp>): Promise<FollowUpResult> {
  return (await startFollowUp(...start)).result();
}

async function awaitChildResult(result: Promise<FollowUpResult>, awaitExisting: ChildFollowUp['result']) {
  try {
    // The race is needed, because the SDK would wait for an abandoned child even after a cancellation.
    return await Promise.race([result, CancellationScope.current().cancelRequested]);
  } catch (error) {
    if (!(error instanceof ChildWorkflowFailure)) throw error;
    if (error.cause instanceof ApplicationFailure) throw error.cause;
    return awaitExisting();
  }
}

async function awaitExistingResult(taskQueue: string, followUp: FollowUpReference): Promise<FollowUpResult> {
  const { followUpResult } = serverCallProxy('wait for the result of the existing follow-up', taskQueue);
  try {
    return await followUpResult(followUp);
  } catch (error) {
    const isActivityFailure = error instanceof ActivityFailure && !(error.cause instanceof CancelledFailure);
    throw isActivityFailure ? (error.cause ?? error) : error;
  }
}
