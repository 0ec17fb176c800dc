import type { Client } from '@temporalio/client';
import { DEFAULT_TASK_QUEUES } from '../contract/names';
import type { FollowUpResult } from '../contract/result';
import { CONNECT_CHECKS, type ConnectOptions, connectClient } from './connect';
import { BatchClient } from './batch/batch-client';
import { type CallOptions, CallRunner } from './call-runner';
import { type FollowUpDescription, listFollowUps } from './description';
import { checkFilter, type FollowUpFilter } from './filter';
import { FollowUpHandle, type StartedFollowUp } from './follow-up-handle';
import { type CallState, invalidFieldError } from './errors';
import { awaitResult } from './await-result';
import { checkOptions, type OptionChecks, checkRun, stringProblem } from './options';
import { checkRetryAll, retryAll, type RetryAllOptions, type RetryResult } from './retry-all';
import { ScheduleClient } from './schedules';
import {
  type NamedRequest,
  START_CHECKS,
  startFollowUp,
  type FollowUpStartResult,
  type StartOptions,
} from './start';

export interface FollowUpClientOptions {
  /** The task queue that the workers poll for workflows. @default 'follow-up' */
  readonly taskQueue?: string | undefined;
}

const CLIENT_CHECKS: OptionChecks<FollowUpClientOptions> = { taskQueue: stringProblem };

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
  readonly #client: Client;
  readonly #calls: CallRunner;
  #closeConnection: (() => Promise<void>) | undefined;

  /**
   * @param client the SDK's client, with the data converter and interceptors that the workers use. `close` leaves this client open.
   *   Requests use its connection. If a call is aborted, the retries of its requests end too.
   * @throws InvalidRequestError if an argument is invalid
   */
  constructor(client: Client, options: FollowUpClientOptions = {}) {
    checkOptions(options, CLIENT_CHECKS);
    if (!(client as Partial<Client> | null)?.workflow)
      throw invalidFieldError('client', 'must be a Client of @temporalio/client');
    this.#client = client;
    this.taskQueue = options.taskQueue ?? DEFAULT_TASK_QUEUES.followUp;
    this.#calls = new CallRunner(client, this.taskQueue);
    this.batches = new BatchClient(this.#calls);
    this.schedules = new ScheduleClient(this.#calls);
  }

  /**
   * Connects using the `TEMPORAL_*` variables and the profile in `temporal.toml`. Close the client after its last use.
   *
   * @throws InvalidRequestError if an option is unknown or invalid
   * @throws TemporalUnreachableError if the connection fails, unless `lazy` is true
   * @throws FollowUpError `INVALID_CONFIGURATION` if a variable, the profile or a plugin is invalid
   * @throws FollowUpError `UNAUTHORIZED` if the Temporal server rejects the credentials, unless `lazy` is true
   * @throws FollowUpError `UNSUPPORTED_SERVER` if the Temporal server is too old, unless `lazy` is true
   */
  static async connect(options: FollowUpClientOptions & ConnectOptions = {}): Promise<FollowUpClient> {
    checkOptions(options, { ...CONNECT_CHECKS, ...CLIENT_CHECKS });
    const { taskQueue, ...connectOptions } = options;
    const { client, close } = await connectClient(connectOptions);
    const followUps = new FollowUpClient(client, { taskQueue });
    followUps.#closeConnection = close;
    return followUps;
  }

  /** The SDK's client. This property is not enumerable, so that a logged client does not show the credentials. */
  get client(): Client {
    return this.#client;
  }

  get namespace(): string {
    return this.#client.options.namespace;
  }

  /**
   * Starts a follow-up. If a follow-up with the same project, job and `requestId` exists, running or ended, the call attaches to
   * that follow-up instead. The message is therefore sent only once.
   *
   * @throws InvalidRequestError if an option is invalid, or with every problem of the request. Nothing is started.
   * @throws ConflictError if the existing follow-up has another prompt
   * @throws SearchAttributesError if the namespace is not set up
   */
  async start(request: NamedRequest, options: StartOptions = {}): Promise<StartedFollowUp> {
    const start = await this.#start(request, options, (started) => started);
    return Object.assign(this.getHandle(start.workflowId, start.runId), start);
  }

  /** Starts a follow-up as {@link start} does, and waits for its result. @throws as `start` and `FollowUpHandle.result` do */
  execute(request: NamedRequest, options: StartOptions = {}): Promise<FollowUpResult> {
    return this.#start(request, options, (started, signal, client) => awaitResult(client, started, signal));
  }

  #start<T>(
    request: NamedRequest,
    options: StartOptions,
    then: (started: FollowUpStartResult, signal: AbortSignal, client: Client) => T | Promise<T>,
  ): Promise<T> {
    const callState: CallState = { unconfirmedStart: 'follow-up' };
    return this.#calls.run(
      options,
      async (client, signal) =>
        then(await startFollowUp(client, this.taskQueue, request, { ...options, callState }), signal, client),
      { callState, optionChecks: START_CHECKS },
    );
  }

  /**
   * Returns a handle for a workflow ID, without a request.
   *
   * @param runId the run of the handle, from `start`, `retry`, `describe` or a list. @default the latest run at each call
   * @throws InvalidRequestError if the workflow ID is not a non-empty string, or the run ID is not a UUID
   */
  getHandle(workflowId: string, runId?: string): FollowUpHandle {
    checkRun(workflowId, runId);
    return new FollowUpHandle(this.#calls, workflowId, runId);
  }

  /**
   * Lists the follow-ups of the namespace that match the filter, each with its latest run. An earlier run is never listed, even if
   * only that run matches the filter. Running follow-ups come first. The list is eventually consistent.
   *
   * @throws InvalidRequestError if the filter is invalid; SearchAttributesError if the namespace is not set up
   */
  list(filter: FollowUpFilter = {}, options: CallOptions = {}): AsyncIterable<FollowUpDescription> {
    checkFilter(filter);
    return this.#calls.iterate(options, (client) => listFollowUps(client, filter));
  }

  /**
   * Retries every follow-up that matches the filter and may be sent again, as {@link FollowUpHandle.retry} does. The receipt decides
   * for each follow-up, so a message of unknown delivery is never sent again. A cancelled follow-up is retried only if
   * `filter.outcome` is `cancelled`. The call does not wait for the outcomes. It can be repeated after an error.
   *
   * @returns an iterable with one result per follow-up. Iterating over it retries the follow-ups. Without an iteration, nothing is
   *   retried.
   * @throws InvalidRequestError if the filter is invalid or empty; SearchAttributesError if the namespace is not set up
   */
  retryAll(filter: FollowUpFilter, options: RetryAllOptions = {}): AsyncIterable<RetryResult> {
    checkRetryAll(filter, options);
    return retryAll(this, filter, options);
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
