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
 * Sends follow-up messages to agent jobs and waits for the jobs. Workers do the work, and the Temporal server keeps the state
 * (docs/client.md). The process of a client may therefore end or restart at any time. No follow-up is lost, and no message is
 * sent twice.
 */
export class FollowUpClient {
  readonly taskQueue: string;
  /** Starts and controls batches of follow-ups. */
  readonly batches: BatchClient;
  /** Creates and changes schedules that start batches. */
  readonly schedules: ScheduleClient;
  readonly #calls: CallRunner;
  #closeConnection: (() => Promise<void>) | undefined;

  /** @param client the SDK's client, with the data converter and interceptors that the workers use. `close` does not close it */
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
   * Connects using the `TEMPORAL_*` variables and the profile in `temporal.toml`. Close the client after its last use.
   *
   * @throws InvalidRequestError if an option is unknown or `timeout` is invalid
   * @throws TemporalUnreachableError if the connection fails
   * @throws FollowUpError `INVALID_CONFIGURATION` if a variable or the profile is invalid
   * @throws FollowUpError `UNAUTHORIZED` if the Temporal server rejects the credentials
   * @throws FollowUpError `UNSUPPORTED_SERVER` if the Temporal server is too old
   */
  static async connect(options: FollowUpClientOptions & ConnectOptions = {}): Promise<FollowUpClient> {
    // An unknown option, such as `address`, is an error: if it were ignored, the client would connect to another Temporal server.
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
   * Starts a follow-up. If a follow-up with the same project, job and `requestId` exists, running or ended, the call attaches to
   * that follow-up instead. The message is therefore sent only once.
   *
   * @throws InvalidRequestError with every problem, before anything is started
   * @throws ConflictError if the existing follow-up has another prompt
   * @throws SearchAttributesError if the namespace is not set up
   */
  async start(request: NamedRequest, options: StartOptions = {}): Promise<StartedFollowUp> {
    const start = await this.#start(request, options, (started) => started);
    return Object.assign(this.getHandle(start.workflowId), start);
  }

  /** Starts a follow-up as {@link start} does, and waits for its result. @throws as `start` and `FollowUpHandle.result` do */
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
    const given = { ...options, callState: { unconfirmedStart: 'follow-up' } satisfies CallState };
    return this.#calls.run({ ...given, optionNames: ['startDelay'] }, async (client, signal) =>
      then(await startFollowUp(client, this.taskQueue, request, given), signal, client),
    );
  }

  /** Returns a handle for a workflow ID, without a request. @throws InvalidRequestError if the ID is not a non-empty string */
  getHandle(workflowId: string): FollowUpHandle {
    checkName('workflowId', workflowId);
    return new FollowUpHandle(this.#calls, workflowId);
  }

  /**
   * Lists the follow-ups of the namespace that match the filter. Running follow-ups come first. The list is eventually
   * consistent.
   *
   * @throws InvalidRequestError if the filter is invalid; SearchAttributesError if the namespace is not set up
   */
  list(filter: FollowUpFilter = {}, options: CallOptions = {}): AsyncIterable<FollowUpDescription> {
    checkFilter(filter);
    return this.#calls.iterate(options, (client) => listFollowUps(client, filter));
  }

  /** Ends every call in progress. Closes the connection if {@link connect} opened it. */
  async close(): Promise<void> {
    this.#calls.close();
    await this.#closeConnection?.();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
