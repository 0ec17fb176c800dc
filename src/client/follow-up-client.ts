import type { Client } from '@temporalio/client';
import { DEFAULT_TASK_QUEUES } from '../core/names';
import type { FollowUpResult } from '../core/result';
import { type ConnectOptions, connectClient } from '../temporal/connect';
import { BatchClient } from './batch/batch-client';
import type { FollowUpDescription } from './description';
import { FollowUpHandle, StartedFollowUp } from './follow-up-handle';
import { LimitsClient } from './limits';
import { type FollowUpFilter, listFollowUps } from './list';
import type { ResultOptions } from './result';
import { ScheduleClient } from './schedules/schedule-client';
import { type NamedRequest, startFollowUp } from './start';

export interface FollowUpClientOptions {
  /** Where the workers poll for workflows. @default 'follow-up' */
  readonly taskQueue?: string;
  /** Where the workers poll for the activities that read, for their limits. @default 'agent-api' */
  readonly readTaskQueue?: string;
  /** Where the workers poll for the activity that sends, for its limits. @default 'agent-api-send' */
  readonly sendTaskQueue?: string;
}

/**
 * Sends follow-up messages to agent jobs and waits for the jobs, by way of the workers: this side holds no key of the
 * agent service, and may die and come back at any time without anything being lost or sent twice.
 *
 * ```ts
 * const followUps = await FollowUpClient.connect();
 * const handle = await followUps.start({ projectId, jobId, prompt, requestId: order.id });
 * const job = await handle.result();
 * ```
 */
export class FollowUpClient {
  readonly taskQueue: string;
  /** Many follow-ups at a time. */
  readonly batches: BatchClient;
  /** Batches at set times. */
  readonly schedules: ScheduleClient;
  /** How often the agent service is asked, in total and by project. */
  readonly limits: LimitsClient;

  /** @param client of the SDK, with the payload codecs and interceptors that the workers know */
  constructor(
    readonly client: Client,
    options: FollowUpClientOptions = {},
  ) {
    this.taskQueue = options.taskQueue ?? DEFAULT_TASK_QUEUES.followUp;
    this.batches = new BatchClient(client, this.taskQueue);
    this.schedules = new ScheduleClient(client, this.taskQueue);
    this.limits = new LimitsClient(client, {
      sends: options.sendTaskQueue ?? DEFAULT_TASK_QUEUES.agentApiSend,
      reads: options.readTaskQueue ?? DEFAULT_TASK_QUEUES.agentApi,
    });
  }

  /**
   * Connects by the variables `TEMPORAL_*` and the profile of `temporal.toml`. Close the client when done.
   *
   * @throws TemporalConfigError, TemporalUnreachableError; FollowUpError `UNAUTHORIZED`
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
   * @throws ConflictError when the follow-up of this `requestId` carries another prompt
   * @throws SearchAttributesError when the namespace is not set up
   */
  async start(request: NamedRequest): Promise<StartedFollowUp> {
    return new StartedFollowUp(this.client, await startFollowUp(this.client, this.taskQueue, request));
  }

  /** {@link start} and the `result` of its handle in one. */
  async execute(request: NamedRequest, options: ResultOptions = {}): Promise<FollowUpResult> {
    const handle = await this.start(request);
    return handle.result(options);
  }

  /** A handle to a follow-up by its workflow id. The server is not asked yet. */
  getHandle(workflowId: string): FollowUpHandle {
    return new FollowUpHandle(this.client, workflowId);
  }

  /**
   * Follow-ups of the namespace, running ones first; eventually consistent.
   *
   * @throws SearchAttributesError when the namespace lacks an attribute that is asked for
   */
  list(filter: FollowUpFilter = {}): AsyncIterable<FollowUpDescription> {
    return listFollowUps(this.client, filter);
  }

  close(): Promise<void> {
    return this.client.connection.close();
  }
}
