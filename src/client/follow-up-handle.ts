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
 * One follow-up, running or ended. Every call throws NotFoundError where there is none.
 *
 * `pollNow`, `extendDeadline` and `resolveDelivery` answer with the progress after them. They throw WaitTimeoutError, and
 * FollowUpError `ALREADY_ENDED` or `UPDATE_REJECTED`.
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
   * Waits for the end, through server restarts.
   *
   * @returns the final job and the receipt; `archived` and `failed` are results too
   * @throws FollowUpRejectedError, DeliveryUnknownError, DeadlineExceededError and JobNotFoundError with `details`;
   *   FollowUpCancelledError with the receipt; FollowUpTerminatedError
   */
  result(options: CallOptions = {}): Promise<FollowUpResult> {
    return this.run(options, (client, signal) => awaitResult(client, this.workflowId, signal));
  }

  /** Where it stands, by its worker; by the server alone when no worker answers within 3 s. */
  progress(options: CallOptions = {}): Promise<ProgressReport> {
    return this.run(options, (client) => readProgress(client, this.workflowId));
  }

  describe(options: CallOptions = {}): Promise<FollowUpDescription> {
    return this.run(options, (client) => describeFollowUp(client, this.workflowId));
  }

  /** Has the job read now, and answers when it has been read. */
  pollNow(options: CallOptions = {}): Promise<FollowUpProgress> {
    return this.update(options, { name: UPDATE_POLL_NOW });
  }

  /** Moves the deadline to now + `duration`, never to an earlier time than it has. */
  extendDeadline(duration: DurationText, options: CallOptions = {}): Promise<FollowUpProgress> {
    return this.update(options, { name: UPDATE_EXTEND_DEADLINE, args: () => [duration] });
  }

  /** Says whether an unknown delivery arrived. `not-delivered` allows one more POST, by the run that is running now. */
  resolveDelivery(decision: DeliveryDecision, options: CallOptions = {}): Promise<FollowUpProgress> {
    const args: WorkflowUpdate['args'] = ({ runId }) => [decision, runId];
    return this.update(options, { name: UPDATE_RESOLVE_DELIVERY, args });
  }

  /** Ends the watch; a message under way is awaited first, and the agent continues. @throws FollowUpError `ALREADY_ENDED` */
  cancel(options: CallOptions = {}): Promise<void> {
    return this.run(options, async (client) => {
      // The server silently accepts the cancellation of a closed workflow (measured, server 1.32.0).
      const { state } = await describeFollowUp(client, this.workflowId);
      if (state !== 'running') throw wrongStateError(this.workflowId, state);
      await client.workflow.getHandle(this.workflowId).cancel();
    });
  }

  /**
   * Gives a follow-up that has ended another run, exactly where its receipt proves `not-sent` or `rejected`.
   *
   * @returns the new run; {@link result} waits for it
   * @throws InvalidRequestError; FollowUpError `STILL_RUNNING`, or `RETRY_NOT_ALLOWED` with the receipt
   */
  retry(options: CallOptions = {}): Promise<{ readonly runId: string }> {
    return this.run(options, (client, signal) => retryFollowUp(client, this.workflowId, signal), 'follow-up');
  }

  private run<T>(
    options: CallOptions,
    work: (client: Client, signal: AbortSignal) => Promise<T>,
    unconfirmed?: CallState['unconfirmed'],
  ): Promise<T> {
    return this.#calls.run({ ...options, reached: { workflowId: this.workflowId, unconfirmed } }, work);
  }

  private update(options: CallOptions, update: WorkflowUpdate): Promise<FollowUpProgress> {
    return this.run(options, (client) => updateFollowUp(client, this.workflowId, update));
  }
}

/** The handle of a follow-up, with what its start has found. */
export type StartedFollowUp = FollowUpHandle & FollowUpStartResult;
