import { setTimeout as sleep } from 'node:timers/promises';
import {
  ApplicationFailure,
  CancelledFailure,
  type Client,
  TerminatedFailure,
  WorkflowFailedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import type { BatchSummary, ItemEnd } from '../../core/batch';
import {
  type BatchProgress,
  UPDATE_CANCEL_RUNNING,
  UPDATE_PAUSE,
  UPDATE_RESUME,
  UPDATE_SET_CONCURRENCY,
} from '../../core/batch-workflows';
import type { FollowUpRequest } from '../../core/request';
import { BatchEndedError, BatchNotFoundError, EndsUnreadableError, NoAnswerError } from '../errors';
import { executeUpdate } from '../updates';
import { isTransient } from '../../temporal/grpc-status';
import { QUERY_TIMEOUT_MS } from '../progress';
import { BatchEnds } from './batch-ends';
import { batchOfRequests, type CheckedBatch } from './items';
import {
  type BatchDescription,
  type BatchReport,
  countItems,
  findBatch,
  type ItemStates,
  readBatchReport,
} from './describe-batch';
import { retryBatch, type RetryOptions } from './retry-batch';
import { type BatchOptions, startBatch, type StartedBatch } from './start-batch';

/** How a batch has ended. */
export interface BatchOutcome {
  readonly state: 'done' | 'tolerance-exceeded' | 'incomplete' | 'cancelled' | 'terminated';
  /** Null where a batch was terminated. */
  readonly summary: BatchSummary | null;
  /** What went wrong, in words; null for a batch that is done. */
  readonly message: string | null;
}

/** A query or an update is answered within milliseconds by a worker that is there. */
const CALL_TIMEOUT_MS = 10_000;

const PAUSE_MS = 1_000;

/** Batches of follow-ups: many at a time, each a follow-up of its own. Reached as `FollowUpClient.batches`. */
export class BatchClient {
  constructor(
    private readonly client: Client,
    private readonly taskQueue: string,
  ) {}

  /** Checks requests before anything is started. @throws InvalidBatchError with every problem, by number from 1 */
  check(
    requests: Iterable<FollowUpRequest> | AsyncIterable<FollowUpRequest>,
    batchId?: string,
  ): Promise<CheckedBatch> {
    return batchOfRequests(requests, batchId);
  }

  /** Starts a batch, or goes on with the one of the same id. Safe to repeat. @throws see {@link startBatch} */
  start(batch: CheckedBatch, options?: BatchOptions): Promise<StartedBatch> {
    return startBatch(this.client, this.taskQueue, batch, options);
  }

  /** What the server knows of a batch. @throws BatchNotFoundError */
  describe(batchId: string): Promise<BatchDescription> {
    return findBatch(this.client, batchId);
  }

  /** Where a batch stands, running or ended, by its worker. @throws BatchNotFoundError; NoAnswerError without a worker */
  async progress(batchId: string): Promise<BatchProgress> {
    const report = await this.report(batchId, CALL_TIMEOUT_MS);
    if (report.from === 'worker') return report.progress;
    const { workflowId, taskQueue } = report.description;
    throw new NoAnswerError(workflowId, taskQueue, report.workers, CALL_TIMEOUT_MS);
  }

  /**
   * Where a batch stands, by its worker; by the server alone when no worker answers within `timeoutMs`.
   *
   * @throws BatchNotFoundError
   */
  report(batchId: string, timeoutMs = QUERY_TIMEOUT_MS): Promise<BatchReport> {
    return readBatchReport(this.client, batchId, timeoutMs);
  }

  /** How many follow-ups of a batch are in each state, by the server alone; null for an id that no query can hold. */
  async countItems(batchId: string): Promise<ItemStates | null> {
    return countItems(this.client, (await this.describe(batchId)).batchId);
  }

  /** The ends of the items of a batch, to be asked for while it runs and after. */
  async ends(batchId: string): Promise<BatchEnds> {
    return new BatchEnds(this.client, (await this.describe(batchId)).workflowId);
  }

  /**
   * All ends that a batch has heard of, in the order of settling.
   *
   * @throws EndsUnreadableError with those that are there, when some are not
   */
  async results(batchId: string): Promise<ItemEnd[]> {
    const { batchId: id, workflowId } = await this.describe(batchId);
    const ends = new BatchEnds(this.client, workflowId);
    const read = await ends.rest();
    if (ends.unreadable.size > 0) throw new EndsUnreadableError(id, [...ends.unreadable], read);
    return read;
  }

  /** Waits for the end of a batch, through restarts of the server. @throws BatchNotFoundError */
  async outcome(batchId: string): Promise<BatchOutcome> {
    const { workflowId } = await this.describe(batchId);
    for (;;) {
      try {
        const summary = (await this.client.workflow.getHandle(workflowId).result()) as BatchSummary;
        return { state: 'done', summary, message: null };
      } catch (error) {
        if (error instanceof WorkflowFailedError) return await this.outcomeOf(batchId, error);
        if (error instanceof WorkflowNotFoundError) {
          throw new BatchNotFoundError(batchId, this.client.options.namespace);
        }
        if (!isTransient(error)) throw error;
        await sleep(PAUSE_MS);
      }
    }
  }

  /** No further item is started until {@link resume}; those that run go on. @throws BatchEndedError */
  pause(batchId: string): Promise<BatchProgress> {
    return this.update(batchId, UPDATE_PAUSE);
  }

  resume(batchId: string): Promise<BatchProgress> {
    return this.update(batchId, UPDATE_RESUME);
  }

  /** @param concurrency 1 to 1,000 @throws UpdateRefusedError, BatchEndedError */
  setConcurrency(batchId: string, concurrency: number): Promise<BatchProgress> {
    return this.update(batchId, UPDATE_SET_CONCURRENCY, concurrency);
  }

  /**
   * Ends a batch: nothing further is started. Its open follow-ups go on, unless `running` is true: then they are
   * cancelled too, and a message under way is awaited first.
   *
   * @throws BatchEndedError
   */
  async cancel(batchId: string, running = false): Promise<void> {
    const { workflowId, state } = await this.describe(batchId);
    if (state !== 'running') throw new BatchEndedError(batchId, state);
    if (running) await this.update(batchId, UPDATE_CANCEL_RUNNING);
    try {
      await this.client.workflow.getHandle(workflowId).cancel();
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
      // It has ended in the meantime: by the update, or by itself.
      if (!running) throw new BatchEndedError(batchId, (await this.describe(batchId)).state);
    }
  }

  /**
   * Runs a batch that has ended once more, and starts in it exactly the items that were not sent or were rejected. Safe to
   * repeat, and followed by any other call: no item is sent twice.
   *
   * @returns null when there is nothing to try again
   * @throws see {@link retryBatch}
   */
  retry(batchId: string, options: RetryOptions = {}): Promise<StartedBatch | null> {
    return retryBatch(this.client, this.taskQueue, batchId, options);
  }

  private async update(batchId: string, name: string, argument?: number): Promise<BatchProgress> {
    const { workflowId, state, taskQueue } = await this.describe(batchId);
    if (state !== 'running') throw new BatchEndedError(batchId, state);
    return executeUpdate<BatchProgress>(this.client, {
      workflowId,
      taskQueue,
      name,
      args: argument === undefined ? [] : [argument],
      timeoutMs: CALL_TIMEOUT_MS,
      ended: async () => new BatchEndedError(batchId, (await this.describe(batchId)).state),
    });
  }

  private async outcomeOf(batchId: string, { cause, message }: WorkflowFailedError): Promise<BatchOutcome> {
    if (cause instanceof CancelledFailure) {
      const { summary } = await this.describe(batchId);
      return { state: 'cancelled', summary, message: 'The batch was cancelled.' };
    }
    if (cause instanceof ApplicationFailure) {
      const summary = (cause.details?.[0] ?? null) as BatchSummary | null;
      const state = cause.type === 'ToleranceExceeded' ? 'tolerance-exceeded' : 'incomplete';
      return { state, summary, message: cause.message };
    }
    const words =
      cause instanceof TerminatedFailure ? 'The batch was terminated.' : (cause?.message ?? message);
    return { state: 'terminated', summary: null, message: words };
  }
}
