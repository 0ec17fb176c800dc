import type { Client } from '@temporalio/client';
import { DEFAULT_TASK_QUEUES } from '../contract/names';
import type { FollowUpResult } from '../contract/result';
import { type ConnectOptions, connectClient } from './connect';
import { BatchClient } from './batch/batch-client';
import { type CallOptions, CallRunner, checkTimeout } from './call-runner';
import { checkFilter, type FollowUpDescription, type FollowUpFilter, listFollowUps } from './description';
import { FollowUpHandle, type StartedFollowUp } from './follow-up-handle';
import { InvalidRequestError, type CallState } from './errors';
import { awaitResult } from './await-result';
import { checkName, unknownOptions } from './options';
import { ScheduleClient } from './schedules';
import { type NamedRequest, startFollowUp, type FollowUpStartResult, type StartOptions } from './start';

export interface FollowUpClientOptions {
  /** The task queue that the workers poll for workflows. @default 'follow-up' */
  readonly taskQueue?: string | undefined;
}

const CONNECT_OPTIONS = ['taskQueue', 'env', 'timeout', 'signal'];

/**
 * Sends follow-up messages to agent jobs and waits for the jobs, by way of the workers (docs/client.md). It may die and come back
 * at any time; nothing is lost or sent twice.
 */
export class FollowUpClient {
  readonly taskQueue: string;
  readonly batches: BatchClient;
  /** Batches at set times. */
  readonly schedules: ScheduleClient;
  readonly #calls: CallRunner;
  #closeConnection: (() => Promise<void>) | undefined;

  /** @param client of the SDK, with the codecs and interceptors that the workers know; it stays yours to close */
  constructor(
    readonly client: Client,
    options: FollowUpClientOptions = {},
  ) {
    this.taskQueue = options.taskQueue ?? DEFAULT_TASK_QUEUES.followUp;
    this.#calls = new CallRunner(client, this.taskQueue);
    this.batches = new BatchClient(this.#calls);
    this.schedules = new ScheduleClient(this.#calls);
  }

  /**
   * Connects by the variables `TEMPORAL_*` and the profile of `temporal.toml`. Close the client when done.
   *
   * @throws InvalidRequestError; TemporalUnreachableError; FollowUpError `INVALID_CONFIGURATION`, `UNAUTHORIZED`
   */
  static async connect(options: FollowUpClientOptions & ConnectOptions = {}): Promise<FollowUpClient> {
    // An `address` that nobody reads would lead to another server.
    const unknown = unknownOptions(options, CONNECT_OPTIONS);
    if (unknown.length > 0) throw new InvalidRequestError(unknown);
    checkTimeout(options.timeout);
    const { client, close } = await connectClient(options);
    const followUps = new FollowUpClient(client, options);
    followUps.#closeConnection = close;
    return followUps;
  }

  get namespace(): string {
    return this.client.options.namespace;
  }

  /**
   * Starts a follow-up, or attaches to the one of the same `requestId`, running or ended: the message is sent once.
   *
   * @throws InvalidRequestError with every problem, before anything is started
   * @throws ConflictError when the follow-up of this `requestId` carries another prompt
   * @throws SearchAttributesError when the namespace is not set up
   */
  async start(request: NamedRequest, options: StartOptions = {}): Promise<StartedFollowUp> {
    const start = await this.#start(request, options, (started) => started);
    return Object.assign(this.getHandle(start.workflowId), start);
  }

  /** {@link start} and the `result` of its handle in one. */
  execute(request: NamedRequest, options: StartOptions = {}): Promise<FollowUpResult> {
    return this.#start(request, options, ({ workflowId }, signal, client) =>
      awaitResult(client, workflowId, signal),
    );
  }

  #start<T>(
    request: NamedRequest,
    options: StartOptions,
    then: (started: FollowUpStartResult, signal: AbortSignal, client: Client) => T | Promise<T>,
  ): Promise<T> {
    const given = { ...options, reached: { unconfirmed: 'follow-up' } satisfies CallState };
    return this.#calls.run({ ...given, optionNames: ['startDelay'] }, async (client, signal) =>
      then(await startFollowUp(client, this.taskQueue, request, given), signal, client),
    );
  }

  /** The server is not asked yet. @throws InvalidRequestError */
  getHandle(workflowId: string): FollowUpHandle {
    checkName('workflowId', workflowId);
    return new FollowUpHandle(this.#calls, workflowId);
  }

  /** Follow-ups of the namespace, running ones first; eventually consistent. @throws InvalidRequestError, SearchAttributesError */
  list(filter: FollowUpFilter = {}, options: CallOptions = {}): AsyncIterable<FollowUpDescription> {
    checkFilter(filter);
    return this.#calls.iterate(options, (client) => listFollowUps(client, filter));
  }

  /** Ends every call that waits, and the connection if {@link connect} has opened it. */
  async close(): Promise<void> {
    this.#calls.close();
    await this.#closeConnection?.();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
