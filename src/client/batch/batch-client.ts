import { setTimeout as sleep } from 'node:timers/promises';
import { WorkflowFailedError } from '@temporalio/client';
import type { BatchProgress, BatchView, ItemEnd } from '../../core/batch/progress';
import type { BatchUpdate } from '../../core/batch/state';
import { hasCode } from '../../core/errors';
import { batchIdOf, batchWorkflowId } from '../../core/ids';
import { cancelAll, ignoreClosed } from '../../temporal/existing-run';
import { openOf } from '../../temporal/lists';
import { type CallOptions, type Calls, SERVER_LIMIT_MS, within } from '../call';
import { type Reached, wrongState } from '../errors';
import { checkName } from '../options';
import { updateRunning } from '../progress';
import { waitThrough } from '../result';
import {
  type BatchItems,
  checkBatch,
  type CheckedBatch,
  checkRunOptions,
  isChecked,
  type NewBatchOptions,
} from './check';
import { BatchEnds, type BatchLook, findBatch, looksAt, viewOf } from './describe';
import { QUIET_AFTER_MS, retryBatch, type RetryOptions, startBatch, type StartOfBatch } from './start';

/** Many follow-ups at a time, with limited concurrency. Reached as `FollowUpClient.batches`. */
export class BatchClient {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /**
   * Starts a batch, or goes on with the one of the same id: one that runs is attached to; one that was cancelled, terminated
   * or has failed is run again; one that is done stays done. Safe to repeat: nothing is sent twice.
   *
   * @throws InvalidRequestError with every problem, before anything is started
   * @throws ConflictError when the batch of this id has other items, options or another order
   * @throws FollowUpError `BATCH_FORGOTTEN` when nobody can tell any more what it has sent
   * @throws SearchAttributesError when the namespace is not set up
   */
  async start(
    items: BatchItems | CheckedBatch,
    { signal, timeout, ...options }: NewBatchOptions & CallOptions = {},
  ): Promise<StartedBatch> {
    const reached: Reached = { unconfirmed: 'batch' };
    const start = await this.#calls.run({ signal, timeout, reached }, async (client, over) => {
      // To check 100,000 items takes seconds.
      if (isChecked(items)) checkRunOptions(options);
      const batch = isChecked(items) ? items : await checkBatch(items, options);
      over.throwIfAborted();
      reached.workflowId = batchWorkflowId(batch.batchId);
      return startBatch({ client, taskQueue: this.#calls.taskQueue, options, signal: over }, batch);
    });
    return Object.assign(this.getHandle(start.batchId), start);
  }

  /** A handle by the batch's id, or its workflow id. The server is not asked yet. @throws InvalidRequestError */
  getHandle(batchId: string): BatchHandle {
    checkName('batchId', batchId);
    return new BatchHandle(this.#calls, batchIdOf(batchId));
  }
}

/** The list is a moment behind: nothing more is open once it shows nothing new twice, so far apart. */
const BETWEEN_LOOKS_MS = 1_000;

/**
 * One batch, running or ended. Each call throws NotFoundError if there is none. `pause`, `resume` and `setConcurrency` answer
 * with the progress after them, and throw NoAnswerError, and FollowUpError `ALREADY_ENDED` or `UPDATE_REFUSED`.
 */
export class BatchHandle {
  readonly #calls: Calls;

  constructor(
    calls: Calls,
    readonly batchId: string,
  ) {
    this.#calls = calls;
  }

  /** Where it stands, running or ended, and why it does not go on. It needs no worker. */
  progress(options: CallOptions = {}): Promise<BatchView> {
    return this.#calls.run(options, (client) =>
      within(client, SERVER_LIMIT_MS, async () => viewOf(client, await findBatch(client, this.batchId))),
    );
  }

  /** Waits for the end, through restarts of the server. A batch that has failed or was cancelled has an outcome too. */
  result(options: CallOptions = {}): Promise<BatchView> {
    const reached: Reached = {};
    return this.#calls.run({ ...options, reached }, async (client, signal) => {
      const { workflowId } = await findBatch(client, this.batchId);
      reached.workflowId = workflowId;
      await waitThrough(signal, () => client.workflow.getHandle(workflowId).result()).catch(
        (error: unknown) => {
          if (!(error instanceof WorkflowFailedError)) throw error;
        },
      );
      const batch = await findBatch(client, this.batchId);
      // Somebody has started it again.
      return batch.state === 'running' ? this.result({ ...options, signal }) : viewOf(client, batch);
    });
  }

  /** The end of each item, live, until the batch has ended. */
  async *results(options: CallOptions = {}): AsyncGenerator<ItemEnd, void, undefined> {
    for await (const { ends } of this.watch(options)) yield* ends;
  }

  /** The ends of the items that have settled so far, in order. It needs no worker. */
  settled(options: CallOptions = {}): Promise<ItemEnd[]> {
    return this.#calls.run(options, async (client) =>
      new BatchEnds(client).news(await findBatch(client, this.batchId)),
    );
  }

  /** A look every two seconds until it has ended; the last one has the rest of the ends. */
  watch(options: CallOptions = {}): AsyncGenerator<BatchLook, void, undefined> {
    return this.#calls.each(options, (client) => looksAt(client, this.batchId, options.signal));
  }

  /** Starts no further item until {@link resume}; those that run go on. */
  pause(options: CallOptions = {}): Promise<BatchProgress> {
    return this.#update(options, 'pause');
  }

  resume(options: CallOptions = {}): Promise<BatchProgress> {
    return this.#update(options, 'resume');
  }

  /** @param concurrency 1 to 1,000 @throws InvalidRequestError */
  async setConcurrency(concurrency: number, options: CallOptions = {}): Promise<BatchProgress> {
    checkRunOptions({ concurrency });
    return this.#update(options, 'setConcurrency', concurrency);
  }

  /**
   * Starts nothing further. Its open follow-ups go on, unless `followUps` is true: then every one that it has started, in any
   * of its runs, is cancelled too, also if the batch has ended. A message under way is awaited first.
   *
   * @returns how many open follow-ups were cancelled
   * @throws FollowUpError `ALREADY_ENDED` without `followUps`
   */
  cancel({
    followUps = false,
    ...options
  }: CallOptions & { readonly followUps?: boolean } = {}): Promise<number> {
    return this.#calls.run(options, async (client, signal) => {
      const { batchId } = this;
      const { workflowId, state, endedAt } = await findBatch(client, batchId);
      if (state !== 'running' && !followUps) throw wrongState(workflowId, state);
      const batch = client.workflow.getHandle(workflowId);
      if (!followUps) {
        await batch.cancel().catch(async (error: unknown) => {
          ignoreClosed(error);
          throw wrongState(workflowId, (await findBatch(client, batchId)).state);
        });
        return 0;
      }
      const told = await openOf(client, batchId);
      if (state === 'running') {
        await this.#update({ signal }, 'cancelRunning').catch((error: unknown) => {
          if (!hasCode(error, 'ALREADY_ENDED')) throw error;
        });
        await batch.cancel().catch(ignoreClosed);
      }
      await cancelAll(client, told);
      // One that was terminated may still have been starting items.
      const until = state === 'terminated' ? Date.parse(endedAt ?? '') + QUIET_AFTER_MS : 0;
      for (let looks = 0; looks < 2; looks += 1) {
        if (looks > 0) await sleep(BETWEEN_LOOKS_MS);
        const untold = [...(await openOf(client, batchId))].filter((followUp) => !told.has(followUp));
        if (untold.length > 0 || Date.now() < until) looks = 0;
        await cancelAll(client, untold);
        for (const followUp of untold) told.add(followUp);
      }
      return told.size;
    });
  }

  /**
   * Runs a batch that has ended once more: each item whose last run provably sent nothing, or was rejected, is started again.
   * Every other item keeps its end, so that nothing is sent twice, whatever is called next.
   *
   * @returns null when there is nothing to try again
   * @throws InvalidRequestError; FollowUpError `STILL_RUNNING`; `BATCH_FORGOTTEN` when its items are gone
   */
  async retry(retry: RetryOptions & CallOptions = {}): Promise<StartedBatch | null> {
    const { signal, timeout, ...options } = retry;
    const { taskQueue } = this.#calls;
    const start = await this.#calls.run(
      { signal, timeout, reached: { unconfirmed: 'batch' } },
      (client, over) => retryBatch({ client, taskQueue, options, signal: over }, this.batchId),
    );
    return start && Object.assign(new BatchHandle(this.#calls, start.batchId), start);
  }

  #update(options: CallOptions, name: BatchUpdate, ...args: number[]): Promise<BatchProgress> {
    return this.#calls.run(options, (client) =>
      updateRunning(client, () => findBatch(client, this.batchId), { name, args: () => args }),
    );
  }
}

/** The handle of a batch, with what the start has found. */
export type StartedBatch = BatchHandle & StartOfBatch;
