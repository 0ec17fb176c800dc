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
import type { ProgressOptions } from '../progress';
import { type ResultOptions, type WaitOptions, waitThrough } from '../result';
import { executeUpdate } from '../updates';
import { BatchEnds } from './batch-ends';
import { cancelFollowUps, openFollowUps } from './cancel-follow-ups';
import { type BatchDescription, type BatchReport, findBatch, readBatchReport } from './describe-batch';
import { retryBatch, type RetryOptions } from './retry-batch';
import type { StartOfBatch } from './start-batch';
import { hasCode } from '../../core/errors';
import { batchEnded, batchNotFound, endsUnreadable } from '../errors';

/** How a batch has ended. */
export interface BatchOutcome {
  readonly state: 'done' | 'tolerance-exceeded' | 'incomplete' | 'cancelled' | 'terminated';
  /** Null where a batch was terminated. */
  readonly summary: BatchSummary | null;
  /** What went wrong, in words; null for a batch that is done. */
  readonly message: string | null;
}

/** One look at a batch that is being watched. */
export interface BatchLook {
  /** Where it stands; null where neither a worker nor the server answered. */
  readonly report: BatchReport | null;
  /** The items that have settled since the look before. */
  readonly ends: readonly ItemEnd[];
}

/** A query or an update is answered within milliseconds by a worker that is there. */
const CALL_TIMEOUT_MS = 10_000;

/** A person sees each second pass. */
const REFRESH_MS = 1_000;

/** Looking takes no more than a fifth of the time, however many pages are to be asked: it costs worker and server. */
const PAUSE_PER_LOOK = 4;

/** How long one look waits for a worker. */
const LOOK_MS = 2_500;

/** One batch, running or ended. It is made without asking the server: that comes with the first call. */
export class BatchHandle {
  readonly #client: Client;
  readonly #taskQueue: string;

  /** @param batchId or the batch's workflow id */
  constructor(
    client: Client,
    taskQueue: string,
    readonly batchId: string,
  ) {
    this.#client = client;
    this.#taskQueue = taskQueue;
  }

  /** What the server knows of it, without a worker. @throws NotFoundError */
  describe(): Promise<BatchDescription> {
    return findBatch(this.#client, this.batchId);
  }

  /**
   * Where it stands, running or ended, by its worker; by the server alone when no worker answers in time.
   *
   * @throws NotFoundError
   */
  progress(options: ProgressOptions = {}): Promise<BatchReport> {
    return readBatchReport(this.#client, this.batchId, options);
  }

  /**
   * Waits for the end, through restarts of the server.
   *
   * @returns how it has ended, also where items have failed or it was cancelled
   * @throws NotFoundError; the reason of `signal`
   */
  async result(options: ResultOptions = {}): Promise<BatchOutcome> {
    const { workflowId } = await this.describe();
    try {
      const wait = () => this.#client.workflow.getHandle(workflowId).result() as Promise<BatchSummary>;
      return { state: 'done', summary: await waitThrough(this.#client, wait, options), message: null };
    } catch (error) {
      if (error instanceof WorkflowFailedError) return await this.outcomeOf(error);
      if (!(error instanceof WorkflowNotFoundError)) throw error;
      throw batchNotFound(this.batchId, this.#client.options.namespace);
    }
  }

  /**
   * The end of each item as its page tells it: live while the batch runs, until it has ended.
   *
   * @throws FollowUpError after those that can be read, when some can't; the reason of `signal`
   */
  async *results(options: WaitOptions = {}): AsyncGenerator<ItemEnd, void, undefined> {
    for await (const { ends } of this.watch(options)) yield* ends;
  }

  /**
   * The ends of the items that have settled so far, in the order of settling.
   *
   * @throws FollowUpError with those that are there, when some are not
   */
  async settled(): Promise<ItemEnd[]> {
    const { batchId, workflowId } = await this.describe();
    const ends = new BatchEnds(this.#client, workflowId);
    const read = await ends.rest();
    if (ends.unreadable.size > 0) throw endsUnreadable(batchId, [...ends.unreadable], read);
    return read;
  }

  /**
   * Looks at it about once a second until it has ended; the last look has the rest of the ends.
   *
   * @throws FollowUpError after the last look, when some ends can't be read; the reason of `signal`
   */
  async *watch({ signal }: WaitOptions = {}): AsyncGenerator<BatchLook, void, undefined> {
    const { batchId, workflowId } = await this.describe();
    const ends = new BatchEnds(this.#client, workflowId);
    const over = new AbortController();
    const stop = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
    let failure: { readonly error: unknown } | undefined;
    const ended = this.result({ signal: stop }).then(
      () => {
        over.abort();
      },
      (error: unknown) => {
        failure = { error };
        over.abort();
      },
    );
    try {
      if ((await this.describe()).state !== 'running') await ended;
      while (!stop.aborted) {
        const askedAt = Date.now();
        const look = await this.look(ends);
        yield look;
        const pauseMs = Math.max(REFRESH_MS, PAUSE_PER_LOOK * (Date.now() - askedAt));
        await sleep(pauseMs, undefined, { signal: stop }).catch(() => undefined);
      }
      signal?.throwIfAborted();
      if (failure !== undefined) throw failure.error;
      const rest = await ends.rest();
      yield { report: null, ends: rest };
      if (ends.unreadable.size > 0) throw endsUnreadable(batchId, [...ends.unreadable], rest);
    } finally {
      over.abort();
      await ended;
    }
  }

  /** No further item is started until {@link resume}; those that run go on. @throws FollowUpError */
  pause(): Promise<BatchProgress> {
    return this.update(UPDATE_PAUSE);
  }

  /** @throws FollowUpError */
  resume(): Promise<BatchProgress> {
    return this.update(UPDATE_RESUME);
  }

  /** @param concurrency 1 to 1,000 @throws FollowUpError, FollowUpError */
  setConcurrency(concurrency: number): Promise<BatchProgress> {
    return this.update(UPDATE_SET_CONCURRENCY, concurrency);
  }

  /**
   * Ends it: nothing further is started. Its open follow-ups go on, unless `followUps` is true: then every open follow-up that
   * it has started, in any of its runs, is cancelled too, also if it has ended before. A message under way is awaited first.
   *
   * @returns how many open follow-ups were cancelled
   * @throws FollowUpError `ALREADY_ENDED` without `followUps`
   */
  async cancel({ followUps = false }: { readonly followUps?: boolean } = {}): Promise<number> {
    const { batchId, workflowId, state } = await this.describe();
    if (state !== 'running' && !followUps) throw batchEnded(this.batchId, state);
    const open = followUps ? await openFollowUps(this.#client, batchId) : [];
    try {
      if (state === 'running') {
        if (followUps) await this.update(UPDATE_CANCEL_RUNNING);
        await this.#client.workflow.getHandle(workflowId).cancel();
      }
    } catch (error) {
      // It has ended in the meantime: by the update, or by itself.
      if (!(error instanceof WorkflowNotFoundError) && !hasCode(error, 'ALREADY_ENDED')) throw error;
      if (!followUps) throw batchEnded(this.batchId, (await this.describe()).state);
    }
    return followUps ? cancelFollowUps(this.#client, batchId, open) : 0;
  }

  /**
   * Runs a batch that has ended once more, and starts in it exactly the items that were not sent or were rejected. Safe to
   * repeat, and followed by any other call: no item is sent twice.
   *
   * @returns null when there is nothing to try again
   * @throws see {@link retryBatch}
   */
  async retry(options: RetryOptions = {}): Promise<StartedBatch | null> {
    const start = await retryBatch(this.#client, this.#taskQueue, this.batchId, options);
    return start === null ? null : new StartedBatch(this.#client, this.#taskQueue, start);
  }

  /** What is not answered is asked again by the next look: nothing is lost by it. */
  private async look(ends: BatchEnds): Promise<BatchLook> {
    let report: BatchReport | null = null;
    try {
      report = await this.progress({ timeoutMs: LOOK_MS });
      return { report, ends: report.from === 'worker' ? await ends.since(report.progress) : [] };
    } catch {
      return { report: report?.from === 'server' ? report : null, ends: [] };
    }
  }

  private async update(name: string, argument?: number): Promise<BatchProgress> {
    const { workflowId, state, taskQueue } = await this.describe();
    if (state !== 'running') throw batchEnded(this.batchId, state);
    return executeUpdate<BatchProgress>(this.#client, {
      workflowId,
      taskQueue,
      name,
      args: argument === undefined ? [] : [argument],
      timeoutMs: CALL_TIMEOUT_MS,
      ended: async () => batchEnded(this.batchId, (await this.describe()).state),
    });
  }

  private async outcomeOf({ cause, message }: WorkflowFailedError): Promise<BatchOutcome> {
    if (cause instanceof CancelledFailure) {
      const { summary } = await this.describe();
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

/** The handle of a batch that was just started, resumed or attached to. */
export class StartedBatch extends BatchHandle implements StartOfBatch {
  readonly workflowId: string;
  readonly attached: StartOfBatch['attached'];
  readonly resumedAfter: StartOfBatch['resumedAfter'];
  readonly items: number;
  readonly pages: number;

  constructor(client: Client, taskQueue: string, start: StartOfBatch) {
    super(client, taskQueue, start.batchId);
    this.workflowId = start.workflowId;
    this.attached = start.attached;
    this.resumedAfter = start.resumedAfter;
    this.items = start.items;
    this.pages = start.pages;
  }
}
