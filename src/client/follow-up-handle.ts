import type { Client } from '@temporalio/client';
import { UPDATE_EXTEND_DEADLINE, UPDATE_POLL_NOW, UPDATE_RESOLVE_DELIVERY } from '../contract/names';
import type { DeliveryDecision, FollowUpProgress, FollowUpResult } from '../contract/result';
import type { DurationText } from '../contract/duration';
import type { CallOptions, CallRunner } from './call-runner';
import { describeFollowUp, findFollowUp, type FollowUpDescription } from './description';
import type { CallState } from './errors';
import type { NamedRun } from './named-run';
import { checkDecision, checkDuration } from './options';
import { type ProgressReport, readProgress, updateFollowUp } from './progress';
import { cancelRun, type WorkflowUpdate } from './update-running';
import { awaitResult } from './await-result';
import { retryFollowUp, type FollowUpStartResult } from './start';

/**
 * Reads and controls a follow-up that runs or has ended. Each call throws NotFoundError if the follow-up does not exist.
 *
 * A handle of a run, for example from `start` or `retry`, always means this run, also after another client has retried the follow-up.
 * A handle without a run ID means, for each call, the run that is the latest when the call begins.
 *
 * The updates `pollNow`, `extendDeadline` and `resolveDelivery` return the progress after the update. An update throws
 * WaitTimeoutError if no worker responds in time, and FollowUpError `ALREADY_ENDED` or `UPDATE_REJECTED`.
 */
export class FollowUpHandle implements NamedRun {
  readonly #calls: CallRunner;

  constructor(
    calls: CallRunner,
    readonly workflowId: string,
    /** The run of the handle. Undefined if the handle means the latest run. */
    readonly runId?: string,
  ) {
    this.#calls = calls;
  }

  /**
   * Waits for the result of the run, also while the Temporal server restarts.
   *
   * @returns the final job and the receipt; a job with the status `archived` or `failed` is a result too
   * @throws FollowUpRejectedError, DeliveryUnknownError, DeadlineExceededError or JobNotFoundError with `details`
   * @throws FollowUpCancelledError with the receipt, or FollowUpTerminatedError
   * @throws FollowUpError `INVALID_REQUEST`, `WORKFLOW_TIMED_OUT` or `UNEXPECTED_FAILURE`
   */
  result(options: CallOptions = {}): Promise<FollowUpResult> {
    return this.run(options, (client, signal) => awaitResult(client, this, signal));
  }

  /** Returns the progress from a worker. If no worker returns it within 3 s, returns the Temporal server's description instead. */
  progress(options: CallOptions = {}): Promise<ProgressReport> {
    return this.run(options, (client) => readProgress(client, this));
  }

  /** Returns the Temporal server's description of the run. Works without a running worker. */
  describe(options: CallOptions = {}): Promise<FollowUpDescription> {
    return this.run(options, (client) => describeFollowUp(client, this));
  }

  /** Makes the worker make its next request now (a read, or another try of a send that waits), and returns after the request. */
  pollNow(options: CallOptions = {}): Promise<FollowUpProgress> {
    return this.update(options, { name: UPDATE_POLL_NOW });
  }

  /** Sets the deadline to now + `duration`, but never to an earlier time than before. @throws InvalidRequestError */
  async extendDeadline(duration: DurationText, options: CallOptions = {}): Promise<FollowUpProgress> {
    checkDuration('duration', duration);
    return this.update(options, { name: UPDATE_EXTEND_DEADLINE, args: () => [duration] });
  }

  /**
   * Decides an unknown delivery in the phase `needs-decision`. `not-delivered` permits one more POST of the run.
   *
   * @throws InvalidRequestError if the decision is neither `delivered` nor `not-delivered`
   */
  async resolveDelivery(decision: DeliveryDecision, options: CallOptions = {}): Promise<FollowUpProgress> {
    checkDecision(decision);
    const args: WorkflowUpdate['args'] = ({ runId }) => [decision, runId];
    return this.update(options, { name: UPDATE_RESOLVE_DELIVERY, args });
  }

  /**
   * Cancels the follow-up, which ends with a receipt after any POST in progress. The agent continues.
   *
   * @throws FollowUpError `ALREADY_ENDED`
   */
  cancel(options: CallOptions = {}): Promise<void> {
    const { workflowId } = this;
    return this.run(options, (client) =>
      cancelRun(client, (runId = this.runId) => findFollowUp(client, { workflowId, runId })),
    );
  }

  /**
   * Runs an ended follow-up again, with the same request. The verdict in the receipt of the run must be `not-sent` or `rejected`.
   *
   * @returns the handle of the new run
   * @throws InvalidRequestError if the stored request is no longer valid
   * @throws FollowUpError `STILL_RUNNING` if the latest run has not ended, or `RETRY_NOT_ALLOWED` with the receipt. If
   *   this run was retried before and the retry has ended, the `state` of the error `RETRY_NOT_ALLOWED` is `retried`.
   */
  async retry(options: CallOptions = {}): Promise<RetriedFollowUp> {
    const { runId } = await this.run(
      options,
      (client, signal) => retryFollowUp(client, this, signal),
      'follow-up',
    );
    return new FollowUpHandle(this.#calls, this.workflowId, runId) as RetriedFollowUp;
  }

  private run<T>(
    options: CallOptions,
    work: (client: Client, signal: AbortSignal) => Promise<T>,
    unconfirmedStart?: CallState['unconfirmedStart'],
  ): Promise<T> {
    return this.#calls.run(options, work, {
      callState: { workflowId: this.workflowId, unconfirmedStart },
    });
  }

  private update(options: CallOptions, update: WorkflowUpdate): Promise<FollowUpProgress> {
    return this.run(options, (client) => updateFollowUp(client, this, update));
  }
}

/** The handle of a follow-up, with the facts of its start. */
export type StartedFollowUp = FollowUpHandle & FollowUpStartResult;

/** The handle of the run that a retry started. */
export type RetriedFollowUp = FollowUpHandle & { readonly runId: string };
