import type { Client } from '@temporalio/client';
import type { FollowUpRequest } from '../../core/request';
import { BatchHandle, StartedBatch } from './batch-handle';
import { batchOfRequests, type CheckedBatch } from './items';
import { type BatchOptions, startBatch } from './start-batch';

/** What a batch sends: requests, or a batch that was checked before. */
export type BatchItems = Iterable<FollowUpRequest> | AsyncIterable<FollowUpRequest> | CheckedBatch;

export interface NewBatchOptions extends BatchOptions {
  /** 1 to 100 characters. @default a hash of the items, so that the same items are the same batch */
  readonly batchId?: string;
}

/** Batches of follow-ups, with limited concurrency, each item a follow-up of its own. See `FollowUpClient.batches`. */
export class BatchClient {
  readonly #client: Client;
  readonly #taskQueue: string;

  constructor(client: Client, taskQueue: string) {
    this.#client = client;
    this.#taskQueue = taskQueue;
  }

  /** Checks requests and starts nothing. @throws InvalidRequestError with every problem, by number from 1 */
  check(
    requests: Iterable<FollowUpRequest> | AsyncIterable<FollowUpRequest>,
    options: Pick<NewBatchOptions, 'batchId'> = {},
  ): Promise<CheckedBatch> {
    return batchOfRequests(requests, options.batchId);
  }

  /**
   * Checks all items, then starts a batch, or goes on with the one of the same id. Safe to repeat: after a crash in the
   * middle, the same call hands over the rest, and nothing is sent twice.
   *
   * @throws InvalidRequestError before anything is started; see {@link startBatch}; the reason of `signal`
   */
  async start(items: BatchItems, { batchId, ...options }: NewBatchOptions = {}): Promise<StartedBatch> {
    const batch = 'digest' in items ? items : await batchOfRequests(items, batchId);
    const start = await startBatch(this.#client, this.#taskQueue, batch, options);
    return new StartedBatch(this.#client, this.#taskQueue, start);
  }

  /** A handle to a batch by its id, or by its workflow id. The server is not asked yet. */
  getHandle(batchId: string): BatchHandle {
    return new BatchHandle(this.#client, this.#taskQueue, batchId);
  }
}
