import type { Client } from '@temporalio/client';
import { UPDATE_EXTEND_DEADLINE, UPDATE_POLL_NOW, UPDATE_RESOLVE_DELIVERY } from '../core/names';
import type { DeliveryDecision, FollowUpProgress, FollowUpResult } from '../core/result';
import type { DurationText } from '../core/units';
import { describeFollowUp, type FollowUpDescription } from './description';
import { type ProgressOptions, type ProgressReport, readProgress } from './progress';
import { awaitResult, type ResultOptions } from './result';
import { updateFollowUp } from './updates';
import { followUpEnded } from './errors';

/** An update that only changes the follow-up is answered by its worker within milliseconds. */
const UPDATE_TIMEOUT_MS = 10_000;

/** An update that waits for a read of the job: the default limit of one HTTP exchange, 30 s, and some room. */
const READING_UPDATE_TIMEOUT_MS = 45_000;

/** One follow-up, running or ended. It is made without asking the server: that comes with the first call. */
export class FollowUpHandle {
  readonly #client: Client;

  constructor(
    client: Client,
    readonly workflowId: string,
  ) {
    this.#client = client;
  }

  /**
   * Waits for the end, through server restarts, for as long as it takes.
   *
   * @returns the final job and the receipt; `archived` and `failed` are results too
   * @throws FollowUpFailedError with `type` and `details`; FollowUpCancelledError with the receipt;
   *   FollowUpTerminatedError; NotFoundError; the reason of `signal`
   */
  result(options: ResultOptions = {}): Promise<FollowUpResult> {
    return awaitResult(this.#client, this.workflowId, options);
  }

  /**
   * Where it stands, by its worker; by the server alone when no worker answers in time.
   *
   * @throws NotFoundError
   */
  progress(options: ProgressOptions = {}): Promise<ProgressReport> {
    return readProgress(this.#client, this.workflowId, options);
  }

  /** What the server knows of it, without a worker. @throws NotFoundError */
  describe(): Promise<FollowUpDescription> {
    return describeFollowUp(this.#client, this.workflowId);
  }

  /** Has the job read now, and answers when it has been read. @throws see {@link updateFollowUp} */
  pollNow(): Promise<FollowUpProgress> {
    const update = { name: UPDATE_POLL_NOW, timeoutMs: READING_UPDATE_TIMEOUT_MS };
    return updateFollowUp(this.#client, this.workflowId, update);
  }

  /** Moves the deadline to now + `duration`, never to an earlier time than it has. @throws see {@link updateFollowUp} */
  extendDeadline(duration: DurationText): Promise<FollowUpProgress> {
    const update = { name: UPDATE_EXTEND_DEADLINE, args: () => [duration], timeoutMs: UPDATE_TIMEOUT_MS };
    return updateFollowUp(this.#client, this.workflowId, update);
  }

  /**
   * Says of an unknown delivery whether it arrived. `not-delivered` allows one more POST, by the run that is running now
   * and by no later one.
   *
   * @throws see {@link updateFollowUp}
   */
  resolveDelivery(decision: DeliveryDecision): Promise<FollowUpProgress> {
    return updateFollowUp(this.#client, this.workflowId, {
      name: UPDATE_RESOLVE_DELIVERY,
      args: (runId: string) => [decision, runId],
      timeoutMs: READING_UPDATE_TIMEOUT_MS,
    });
  }

  /**
   * Asks for the end of the watch; a message under way is awaited first. The agent continues: the service has no
   * operation to stop it.
   *
   * @throws NotFoundError, FollowUpError
   */
  async cancel(): Promise<void> {
    // The server silently accepts the cancellation of a closed workflow (measured, server 1.31).
    const { state } = await this.describe();
    if (state !== 'running') throw followUpEnded(this.workflowId, state);
    await this.#client.workflow.getHandle(this.workflowId).cancel();
  }
}

/** What a start has found or made. */
export interface StartOfFollowUp {
  readonly workflowId: string;
  readonly requestId: string;
  /** The run that was started or found. */
  readonly runId: string;
  /** False when this call started the follow-up; otherwise whether the existing one is running or has ended. */
  readonly attached: false | 'running' | 'ended';
  /** Options in which the existing follow-up differs from the request, in words; it keeps its own. */
  readonly differences: readonly string[];
  /** False where the message of the existing follow-up is no longer there to be compared. */
  readonly promptCompared: boolean;
}

/** The handle of a follow-up that was just started or attached to. */
export class StartedFollowUp extends FollowUpHandle implements StartOfFollowUp {
  readonly requestId: string;
  readonly runId: string;
  readonly attached: StartOfFollowUp['attached'];
  readonly differences: readonly string[];
  readonly promptCompared: boolean;

  constructor(client: Client, start: StartOfFollowUp) {
    super(client, start.workflowId);
    this.requestId = start.requestId;
    this.runId = start.runId;
    this.attached = start.attached;
    this.differences = start.differences;
    this.promptCompared = start.promptCompared;
  }
}
