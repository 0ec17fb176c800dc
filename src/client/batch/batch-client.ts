import type { FollowUpRequest } from '../../core/request';
import type { CallOptions, Calls } from '../call';
import { checkName, checkRunOptions } from '../run-options';
import { BatchHandle, type StartedBatch } from './batch-handle';
import { checkBatch, type CheckedBatch, isChecked, type NewBatchOptions } from './items';
import { startBatch } from './start-batch';

/** What a batch sends: requests, or a batch that was checked before. */
export type BatchItems = Iterable<FollowUpRequest> | AsyncIterable<FollowUpRequest> | CheckedBatch;

/** Many follow-ups at a time, with limited concurrency. Reached as `FollowUpClient.batches`. */
export class BatchClient {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Checks requests and options, and starts nothing. */
  readonly check = checkBatch;

  /**
   * Checks all items and options, then starts a batch, or goes on with the one of the same id: one that runs is handed what
   * it lacks; one that was cancelled, terminated or has failed is run again; one that is done stays done. Safe to repeat:
   * after a crash in the middle, the same call hands over the rest, and nothing is sent twice.
   *
   * @throws InvalidRequestError with every problem, before anything is started
   * @throws ConflictError when the batch of this id has other items, options or another order
   * @throws FollowUpError `BATCH_FORGOTTEN` when nobody can tell any more what it has sent
   * @throws SearchAttributesError when the namespace is not set up
   */
  async start(
    items: BatchItems,
    { signal, timeout, ...options }: NewBatchOptions & CallOptions = {},
  ): Promise<StartedBatch> {
    const start = await this.#calls.run({ signal, timeout }, async (client, over) => {
      // A batch that was checked has its id.
      if (isChecked(items)) checkRunOptions(options, ['onPage']);
      const batch = isChecked(items) ? items : await checkBatch(items, options);
      return startBatch({ client, taskQueue: this.#calls.taskQueue, options, signal: over }, batch);
    });
    return Object.assign(this.getHandle(start.batchId), start);
  }

  /** A handle to a batch by its id, or by its workflow id. The server is not asked yet. @throws InvalidRequestError */
  getHandle(batchId: string): BatchHandle {
    checkName('batchId', batchId);
    return new BatchHandle(this.#calls, batchId);
  }
}
