import type { Client } from '@temporalio/client';
import { UPDATE_EXTEND_DEADLINE, UPDATE_POLL_NOW, UPDATE_RESOLVE_DELIVERY } from '../contract/names';
import type { DeliveryDecision, FollowUpProgress, FollowUpResult } from '../contract/result';
import type { DurationText } from '../contract/duration';
import type { CallOptions, CallRunner } from './call-runner';
import { describeFollowUp, type FollowUpDescription } from './description';
import { type CallState, wrongStateError } from './errors';
import { type ProgressReport, readProgress, type WorkflowUpdate, updateFollowUp } from './progress';
import { awaitResult } from './await-result';
import { retryFollowUp, type FollowUpStartResult } from './start';

/**
 * Reads and controls a follow-up that runs or has ended. Each call throws NotFoundError if the follow-up does not exist.
 *
 * The updates `pollNow`, `extendDeadline` and `resolveDelivery` return the progress after the update. An update throws
 * WaitTimeoutError if no worker responds in time, and FollowUpError `ALREADY_ENDED` or `UPDATE_REJECTED`.
 */
export class FollowUpHandle {
  readonly #calls: CallRunner;

  constructor(
    calls: CallRunner,
    readonly workflowId: string,
  ) {
    this.#calls = calls;
  }

  /**
   * Waits for the result, also while the Temporal server restarts.
   *
   * @returns the final job and the receipt; a job with the status `archived` or `failed` is a result too
   * @throws FollowUpRejectedError, DeliveryUnknownError, DeadlineExceededError or JobNotFoundError with `details`
   * @throws FollowUpCancelledError with the receipt, or FollowUpTerminatedError
   * @throws FollowUpError `INVALID_REQUEST`, `WORKFLOW_TIMED_OUT` or `UNEXPECTED_FAILURE`
   */
  result(options: CallOptions = {}): Promise<FollowUpResult> {
    return this.run(options, (client, signal) => awaitResult(client, this.workflowId, signal));
  }

  /** Returns the progress from a worker. If no worker returns it within 3 s, returns the Temporal server's description instead. */
  progress(options: CallOptions = {}): Promise<ProgressReport> {
    return this.run(options, (client) => readProgress(client, this.workflowId));
  }

  /** Returns the Temporal server's description of the follow-up. Works without a running worker. */
  describe(options: CallOptions = {}): Promise<FollowUpDescription> {
    return this.run(options, (client) => describeFollowUp(client, this.workflowId));
  }

  /** Makes the worker read the job now, and returns after the read. */
  pollNow(options: CallOptions = {}): Promise<FollowUpProgress> {
    return this.update(options, { name: UPDATE_POLL_NOW });
  }

  /** Sets the deadline to now + `duration`, but never to an earlier time than before. */
  extendDeadline(duration: DurationText, options: CallOptions = {}): Promise<FollowUpProgress> {
    return this.update(options, { name: UPDATE_EXTEND_DEADLINE, args: () => [duration] });
  }

  /** Decides an unknown delivery in the phase `needs-decision`. `not-delivered` permits one more POST of the current run. */
  resolveDelivery(decision: DeliveryDecision, options: CallOptions = {}): Promise<FollowUpProgress> {
    const args: WorkflowUpdate['args'] = ({ runId }) => [decision, runId];
    return this.update(options, { name: UPDATE_RESOLVE_DELIVERY, args });
  }

  /** Ends the watch after a POST in progress has ended. The agent continues. @throws FollowUpError `ALREADY_ENDED` */
  cancel(options: CallOptions = {}): Promise<void> {
    return this.run(options, async (client) => {
      // Temporal server 1.32.0 silently accepts the cancellation of a closed workflow, so the state is checked first.
      const { state } = await describeFollowUp(client, this.workflowId);
      if (state !== 'running') throw wrongStateError(this.workflowId, state);
      await client.workflow.getHandle(this.workflowId).cancel();
    });
  }

  /**
   * Runs an ended follow-up again, with the same request. The verdict in its receipt must be `not-sent` or `rejected`.
   *
   * @returns the ID of the new run; {@link result} waits for this run
   * @throws InvalidRequestError if the stored request is no longer valid
   * @throws FollowUpError `STILL_RUNNING`, or `RETRY_NOT_ALLOWED` with the receipt
   */
  retry(options: CallOptions = {}): Promise<{ readonly runId: string }> {
    return this.run(options, (client, signal) => retryFollowUp(client, this.workflowId, signal), 'follow-up');
  }

  private run<T>(
    options: CallOptions,
    work: (client: Client, signal: AbortSignal) => Promise<T>,
    unconfirmedStart?: CallState['unconfirmedStart'],
  ): Promise<T> {
    return this.#calls.run(
      { ...options, callState: { workflowId: this.workflowId, unconfirmedStart } },
      work,
    );
  }

  private update(options: CallOptions, update: WorkflowUpdate): Promise<FollowUpProgress> {
    return this.run(options, (client) => updateFollowUp(client, this.workflowId, update));
  }
}

/** The handle of a follow-up, with the facts of its start. */
export type StartedFollowUp = FollowUpHandle & FollowUpStartResult;
