import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, WorkflowFailedError } from '@temporalio/client';
import { settingProblems } from '../../batch/items';
import type { BatchProgress, BatchView, BatchItemResult } from '../../batch/progress';
import type { BatchUpdate } from '../../batch/memo';
import { hasCode } from '../../contract/follow-up-error';
import { toBatchId, batchWorkflowId } from '../../contract/ids';
import { cancelWorkflows, getFirstRunId, ignoreClosedWorkflow } from '../../temporal/workflow-executions';
import { listRunningIds } from '../../temporal/visibility';
import { type CallOptions, type CallRunner, SERVER_TIMEOUT_MS, withTimeout } from '../call-runner';
import { type CallState, cancelTimeoutError, throwIfProblems } from '../errors';
import { getHandleOfRun } from '../named-run';
import { booleanProblem, checkName, checkObject, checkOptions } from '../options';
import { cancelRun, updateRunning } from '../update-running';
import { retryWhileUnavailable } from '../await-result';
import {
  type BatchItems,
  checkBatch,
  type CheckedBatch,
  RUN_CHECKS,
  isCheckedBatch,
  type StartBatchOptions,
} from './check';
import {
  type BatchDescription,
  BatchResultReader,
  type BatchWatchUpdate,
  findBatch,
  watchBatch,
  readBatchView,
} from './describe';
import { MAX_LATE_START_MS } from './earlier-runs';
import { retryBatch, type RetryOptions, startBatch, type BatchStartResult } from './start';

/** Starts batches: many follow-ups with limited concurrency. Available as `FollowUpClient.batches`. */
export class BatchClient {
  readonly #calls: CallRunner;

  constructor(calls: CallRunner) {
    this.#calls = calls;
  }

  /**
   * Starts a batch, or continues the batch with the same ID:
   *
   * - If the batch is running, the call attaches to the batch.
   * - If the batch was cancelled, terminated or failed, the call resumes the batch.
   * - If the batch has completed, the call starts nothing.
   *
   * The call can be repeated, because no message is sent twice.
   *
   * @throws InvalidRequestError with every problem of the options or, if they are valid, of the items. Nothing is started.
   * @throws ConflictError if the batch with this ID has other items, other request options or another order
   * @throws FollowUpError `BATCH_ITEMS_UNAVAILABLE` if the existing batch is being deleted
   * @throws SearchAttributesError if the namespace is not set up
   */
  async start(
    items: BatchItems | CheckedBatch,
    startOptions: StartBatchOptions & CallOptions = {},
  ): Promise<StartedBatch> {
    checkObject('options', startOptions);
    const { signal, timeout, ...options } = startOptions;
    const callState: CallState = { unconfirmedStart: 'batch' };
    const work = async (client: Client, callSignal: AbortSignal) => {
      // A checked batch is not checked again, because the check of 100,000 items takes seconds.
      if (isCheckedBatch(items)) checkOptions(options, RUN_CHECKS);
      const batch = isCheckedBatch(items) ? items : await checkBatch(items, options);
      callSignal.throwIfAborted();
      callState.workflowId = batchWorkflowId(batch.batchId);
      return startBatch({ client, taskQueue: this.#calls.taskQueue, options, signal: callSignal }, batch);
    };
    const start = await this.#calls.run({ signal, timeout }, work, { callState });
    return Object.assign(this.getHandle(start.batchId), start);
  }

  /** Returns a handle for a batch ID or a batch's workflow ID, without a request. @throws InvalidRequestError */
  getHandle(batchId: string): BatchHandle {
    checkName('batchId', batchId);
    return new BatchHandle(this.#calls, toBatchId(batchId));
  }
}

/**
 * The interval between visibility lists, which lag. `cancel` with `cancelRunning` ends after two lists in a row that show no
 * further running item. If an item appears in the list later, the activity `runItems` cancels it, provided that the batch still
 * runs.
 */
const LIST_INTERVAL_MS = 1_000;

/**
 * Reads and controls a batch that runs or has ended. Each call throws NotFoundError if the batch does not exist.
 *
 * The updates `pause`, `resume` and `setConcurrency` return the progress after the update. An update throws WaitTimeoutError if
 * no worker responds in time, and FollowUpError `ALREADY_ENDED` or `UPDATE_REJECTED`.
 */
export class BatchHandle {
  readonly #calls: CallRunner;

  constructor(
    calls: CallRunner,
    readonly batchId: string,
  ) {
    this.#calls = calls;
  }

  /** Returns the batch's progress and, if the batch is blocked, the reason. Works without a running worker. */
  progress(options: CallOptions = {}): Promise<BatchView> {
    return this.#calls.run(options, (client) =>
      withTimeout(client, SERVER_TIMEOUT_MS, async () =>
        readBatchView(client, await findBatch(client, this.batchId)),
      ),
    );
  }

  /**
   * Waits for the end of one named run: the run that is the latest when the Temporal server first responds. The wait continues
   * while the Temporal server is unreachable. A failed or cancelled batch has a result too.
   */
  result(options: CallOptions = {}): Promise<BatchView> {
    const callState: CallState = { workflowId: batchWorkflowId(this.batchId) };
    const work = async (client: Client, signal: AbortSignal) => {
      let batch = await retryWhileUnavailable(signal, () => findBatch(client, this.batchId));
      const { workflowId } = batch;
      const runId = getFirstRunId(batch);
      callState.workflowId = workflowId;
      while (batch.state === 'running') {
        const awaited = client.workflow.getHandle(workflowId, batch.runId);
        await retryWhileUnavailable(signal, () => awaited.result()).catch((error: unknown) => {
          if (!(error instanceof WorkflowFailedError)) throw error;
        });
        // If a reset terminated the awaited Temporal run, the batch continues in a new one.
        batch = await retryWhileUnavailable(signal, () => findBatch(client, this.batchId, runId));
      }
      return retryWhileUnavailable(signal, () => readBatchView(client, batch));
    };
    return this.#calls.run(options, work, { callState });
  }

  /** Yields the outcome of each item soon after the item has ended, until the batch has ended. */
  async *streamResults(options: CallOptions = {}): AsyncGenerator<BatchItemResult, void, undefined> {
    for await (const { results } of this.watch(options)) yield* results;
  }

  /** Returns the outcomes of the items that have ended so far, ordered by end time. Works without a running worker. */
  listResults(options: CallOptions = {}): Promise<BatchItemResult[]> {
    return this.#calls.run(options, async (client) =>
      new BatchResultReader(client).readNew(await findBatch(client, this.batchId)),
    );
  }

  /** Yields a report every two seconds until the batch has ended. The last report has the remaining outcomes. */
  watch(options: CallOptions = {}): AsyncGenerator<BatchWatchUpdate, void, undefined> {
    return this.#calls.iterate(options, (client, signal) => watchBatch(client, this.batchId, signal));
  }

  /** Pauses the batch: no further item starts until {@link resume}. Running items continue. */
  pause(options: CallOptions = {}): Promise<BatchProgress> {
    return this.#update(options, 'pause');
  }

  /** Resumes a paused batch. */
  resume(options: CallOptions = {}): Promise<BatchProgress> {
    return this.#update(options, 'resume');
  }

  /** Sets how many items may run at the same time. @param concurrency 1 to 1,000 @throws InvalidRequestError */
  async setConcurrency(concurrency: number, options: CallOptions = {}): Promise<BatchProgress> {
    throwIfProblems(settingProblems(concurrency, null));
    return this.#update(options, 'setConcurrency', concurrency);
  }

  /**
   * Cancels the batch, so that no further item starts. By default, running follow-ups continue. If `cancelRunning` is true, every
   * running follow-up that any run of the batch started is cancelled too, even if the batch has ended. A POST in progress ends
   * first.
   *
   * @returns the number of running follow-ups that were cancelled
   * @throws FollowUpError `ALREADY_ENDED` if the batch has ended and `cancelRunning` is false
   * @throws WaitTimeoutError if `cancelRunning` is true and no worker responds in time. The batch and its running follow-ups are
   *   cancelled when a worker runs. Then repeat the call, because the batch may start follow-ups before it ends.
   */
  async cancel(
    cancelOptions: CallOptions & { readonly cancelRunning?: boolean | undefined } = {},
  ): Promise<number> {
    const work = async (client: Client, signal: AbortSignal) => {
      const find = (runId?: string) => findBatch(client, this.batchId, runId);
      if (cancelOptions.cancelRunning) return this.#cancelWithItems(client, await find(), signal);
      await cancelRun(client, find);
      return 0;
    };
    return this.#calls.run(cancelOptions, work, { optionChecks: { cancelRunning: booleanProblem } });
  }

  async #cancelWithItems(client: Client, found: BatchDescription, signal: AbortSignal): Promise<number> {
    const { batchId, state, endedAt } = found;
    const cancelledIds = await listRunningIds(client, batchId);
    let timeoutError: unknown;
    if (state === 'running') {
      await this.#update({ signal }, 'cancelRunning').catch((error: unknown) => {
        if (hasCode(error, 'WAIT_TIMEOUT')) timeoutError = error;
        else if (!hasCode(error, 'ALREADY_ENDED')) throw error;
      });
      // A cancellation needs no worker, unlike the update. Without it, the batch would continue to send when a worker runs again.
      await getHandleOfRun(client, found).cancel().catch(ignoreClosedWorkflow);
    }
    await cancelWorkflows(client, cancelledIds);
    if (hasCode(timeoutError, 'WAIT_TIMEOUT')) throw cancelTimeoutError(timeoutError, cancelledIds.size);
    // For some seconds after its end, a terminated batch may still start items, and the list may lack items of any batch.
    const until = endedAt === null ? 0 : Date.parse(endedAt) + MAX_LATE_START_MS;
    for (let listsWithoutNewIds = 0; ;) {
      const newIds = [...(await listRunningIds(client, batchId))].filter(
        (followUp) => !cancelledIds.has(followUp),
      );
      await cancelWorkflows(client, newIds);
      for (const followUp of newIds) cancelledIds.add(followUp);
      listsWithoutNewIds = newIds.length > 0 || Date.now() < until ? 0 : listsWithoutNewIds + 1;
      if (listsWithoutNewIds === 2) return cancelledIds.size;
      await sleep(LIST_INTERVAL_MS, undefined, { signal });
    }
  }

  /**
   * Retries a batch that has ended. Each item whose last run provably sent nothing, or was rejected, is started again. Each item
   * that was never started is started, too. Every other item keeps its outcome. Unless `includeUnknown` is true, no sequence of
   * calls sends a message twice.
   *
   * @returns null if no item can be retried
   * @throws InvalidRequestError if an option is invalid
   * @throws FollowUpError `STILL_RUNNING` if a run is in progress, unless a `retry` with the same `includeUnknown` started this
   *   run; `BATCH_ITEMS_UNAVAILABLE` if the items are no longer stored
   */
  async retry(retry: RetryOptions & CallOptions = {}): Promise<StartedBatch | null> {
    checkObject('options', retry);
    const { signal, timeout, ...options } = retry;
    const { taskQueue } = this.#calls;
    const start = await this.#calls.run(
      { signal, timeout },
      (client, callSignal) => retryBatch({ client, taskQueue, options, signal: callSignal }, this.batchId),
      { callState: { unconfirmedStart: 'batch', includesUnknown: options.includeUnknown === true } },
    );
    return start && Object.assign(new BatchHandle(this.#calls, start.batchId), start);
  }

  #update(options: CallOptions, name: BatchUpdate, ...args: number[]): Promise<BatchProgress> {
    return this.#calls.run(options, async (client) => {
      const find = (runId?: string) => findBatch(client, this.batchId, runId);
      const { result } = await updateRunning(client, find, { name, args: () => args });
      return result as BatchProgress;
    });
  }
}

/** The handle of a batch, with the facts of its start. */
export type StartedBatch = BatchHandle & BatchStartResult;
