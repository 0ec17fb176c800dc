import type { Client } from '@temporalio/client';
import type { DurationText } from '../core/units';
import {
  DEFAULT_TASK_QUEUES,
  UPDATE_EXTEND_DEADLINE,
  UPDATE_POLL_NOW,
  UPDATE_RESOLVE_DELIVERY,
} from '../core/names';
import type { DeliveryDecision, FollowUpProgress, FollowUpResult } from '../core/result';
import { BatchClient } from './batch/batch-client';
import { type ConnectOptions, connectClient } from '../temporal/connect';
import { type FollowUpCost, readCost } from './cost';
import { describeFollowUp, type FollowUpDescription } from './description';
import { FollowUpEndedError } from './errors';
import {
  clearLimits,
  type LimitedQueues,
  type Limits,
  type LimitsChange,
  readLimits,
  setLimits,
} from './limits';
import { type FollowUpFilter, listFollowUps } from './list';
import { type ProgressReport, QUERY_TIMEOUT_MS, readProgress } from './progress';
import { awaitResult, type ResultOptions } from './result';
import { ScheduleClient } from './schedules/schedule-client';
import { type NamedRequest, type StartedFollowUp, startFollowUp } from './start';
import { updateFollowUp } from './updates';

export interface FollowUpClientOptions {
  /** Where the workers poll for workflows. @default 'follow-up' */
  readonly taskQueue?: string;
  /** Where the workers poll for the activities that read, for their limits. @default 'agent-api' */
  readonly readTaskQueue?: string;
  /** Where the workers poll for the activity that sends, for its limits. @default 'agent-api-send' */
  readonly sendTaskQueue?: string;
}

/** An update that only changes the follow-up is answered by its worker within milliseconds. */
const UPDATE_TIMEOUT_MS = 10_000;

/** An update that waits for a read of the job: the default limit of one HTTP exchange, 30 s, and some room. */
const READING_UPDATE_TIMEOUT_MS = 45_000;

/**
 * Sends follow-up messages to agent jobs and waits for the jobs, by way of the workers: this side holds no key of the
 * agent service, and may die and come back at any time without anything being lost or sent twice.
 *
 * ```ts
 * const followUps = await FollowUpClient.connect();
 * const { workflowId } = await followUps.start({ projectId, jobId, prompt, requestId: order.id });
 * const job = await followUps.result(workflowId);
 * ```
 */
export class FollowUpClient {
  readonly taskQueue: string;
  /** Many follow-ups at a time. */
  readonly batches: BatchClient;
  /** Batches at set times. */
  readonly schedules: ScheduleClient;
  private readonly limitedQueues: LimitedQueues;

  /** @param client of the SDK, with the payload codecs and interceptors that the workers know */
  constructor(
    readonly client: Client,
    options: FollowUpClientOptions = {},
  ) {
    this.taskQueue = options.taskQueue ?? DEFAULT_TASK_QUEUES.followUp;
    this.limitedQueues = {
      sends: options.sendTaskQueue ?? DEFAULT_TASK_QUEUES.agentApiSend,
      reads: options.readTaskQueue ?? DEFAULT_TASK_QUEUES.agentApi,
    };
    this.batches = new BatchClient(client, this.taskQueue);
    this.schedules = new ScheduleClient(client, this.taskQueue, this.batches);
  }

  /**
   * Connects by the variables `TEMPORAL_*` and the profile of `temporal.toml`. Close the client when done.
   *
   * @throws TemporalConfigError, TemporalUnreachableError
   */
  static async connect(options: FollowUpClientOptions & ConnectOptions = {}): Promise<FollowUpClient> {
    const { client } = await connectClient(options);
    return new FollowUpClient(client, options);
  }

  get namespace(): string {
    return this.client.options.namespace;
  }

  /**
   * Starts a follow-up, or attaches to the one of the same `requestId`, running or ended.
   *
   * Safe to repeat: after a crash, call it again with the same request, and the message is still sent once.
   *
   * @throws InvalidRequestError with every problem, before anything is started
   * @throws RequestConflictError when the follow-up of this `requestId` carries another prompt
   * @throws SearchAttributesError when the namespace is not set up
   */
  start(request: NamedRequest): Promise<StartedFollowUp> {
    return startFollowUp(this.client, this.taskQueue, request);
  }

  /**
   * Waits for the end of a follow-up, through server restarts, for as long as it takes.
   *
   * @returns the final job and the receipt; `archived` and `failed` are results too
   * @throws FollowUpError with `type` and `details`; FollowUpCancelledError with the receipt; FollowUpTerminatedError;
   *   FollowUpTimedOutError; FollowUpNotFoundError
   */
  result(workflowId: string, options: ResultOptions = {}): Promise<FollowUpResult> {
    return awaitResult(this.client, workflowId, options);
  }

  /** {@link start} and {@link result} in one. */
  async send(request: NamedRequest): Promise<FollowUpResult> {
    const { workflowId } = await this.start(request);
    return this.result(workflowId);
  }

  /**
   * Where a follow-up stands, by its worker; by the server alone when no worker answers within `timeoutMs`.
   *
   * @throws FollowUpNotFoundError
   */
  progress(workflowId: string, timeoutMs = QUERY_TIMEOUT_MS): Promise<ProgressReport> {
    return readProgress(this.client, workflowId, timeoutMs);
  }

  /** What the server knows of a follow-up. @throws FollowUpNotFoundError */
  describe(workflowId: string): Promise<FollowUpDescription> {
    return describeFollowUp(this.client, workflowId);
  }

  /**
   * What a follow-up, running or ended, has cost so far: history, workflow tasks, polls and billable actions. The polls of
   * a running one are asked of its worker by a query.
   *
   * @throws FollowUpNotFoundError
   */
  cost(workflowId: string): Promise<FollowUpCost> {
    return readCost(this.client, workflowId);
  }

  /** Has the job read now, and answers when it has been read. @throws see {@link updateFollowUp} */
  pollNow(workflowId: string): Promise<FollowUpProgress> {
    return updateFollowUp(this.client, workflowId, {
      name: UPDATE_POLL_NOW,
      timeoutMs: READING_UPDATE_TIMEOUT_MS,
    });
  }

  /** Moves the deadline to now + `duration`, never to an earlier time than it has. */
  extendDeadline(workflowId: string, duration: DurationText): Promise<FollowUpProgress> {
    const update = { name: UPDATE_EXTEND_DEADLINE, args: () => [duration], timeoutMs: UPDATE_TIMEOUT_MS };
    return updateFollowUp(this.client, workflowId, update);
  }

  /**
   * Says of an unknown delivery whether it arrived. `not-delivered` allows one more POST, by the run that is running now
   * and by no later one.
   */
  resolveDelivery(workflowId: string, decision: DeliveryDecision): Promise<FollowUpProgress> {
    const update = {
      name: UPDATE_RESOLVE_DELIVERY,
      args: (runId: string) => [decision, runId],
      timeoutMs: READING_UPDATE_TIMEOUT_MS,
    };
    return updateFollowUp(this.client, workflowId, update);
  }

  /**
   * Asks for the end of the watch; a message under way is awaited first. The agent itself goes on: the service has no
   * operation to stop it.
   *
   * @throws FollowUpNotFoundError, FollowUpEndedError
   */
  async cancel(workflowId: string): Promise<void> {
    // The server accepts the cancellation of a closed workflow without a word (measured, server 1.31).
    const { state } = await this.describe(workflowId);
    if (state !== 'running') throw new FollowUpEndedError(workflowId, state);
    await this.client.workflow.getHandle(workflowId).cancel();
  }

  /** Follow-ups of the namespace, running ones first; eventually consistent. */
  list(filter: FollowUpFilter = {}): Promise<FollowUpDescription[]> {
    return listFollowUps(this.client, filter);
  }

  /** The limits of sends and reads, and how many wait. @throws LimitsError */
  limits(): Promise<Limits> {
    return readLimits(this.client, this.limitedQueues);
  }

  /**
   * Sets limits that hold at once for all workers; what is left out stays as it is. Limits per project and weights need
   * fairness on the server, which does not tell whether it is on (docs/operations.md).
   *
   * @returns the limits that hold now
   * @throws InvalidLimitsError with every problem, before anything is changed; LimitsError
   */
  setLimits(change: LimitsChange): Promise<Limits> {
    return setLimits(this.client, this.limitedQueues, change);
  }

  /** Removes all limits and weights, whoever has set them. @throws LimitsError */
  clearLimits(): Promise<Limits> {
    return clearLimits(this.client, this.limitedQueues);
  }

  close(): Promise<void> {
    return this.client.connection.close();
  }
}
