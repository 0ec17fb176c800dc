import { type Checked, count, objectOf, type JsonObject, listOf } from '../contract/checks';
import type { RetryScope } from '../contract/outcome';
import type { FollowUpRequest } from '../contract/request';
import { type BatchBoard, BOARD_FIELDS, isBatchBoard } from './board';
import type { MaxFailures } from './items';

/** Has a chunk of a large batch's items as its input. Because of its start delay, no worker runs it. */
export const CHUNK_WORKFLOW = 'followUpBatchItems';

/** The updates of a batch. `cancelRunning` ends the batch like a cancellation, and its running follow-ups too. */
export type BatchUpdate = 'pause' | 'resume' | 'setConcurrency' | 'cancelRunning';

/** The memo field with a batch's {@link BatchMemo}. Clients read it without a worker. */
export const MEMO_BATCH = 'followUpBatch';

export interface BatchSettings {
  readonly batchId: string;
  readonly items: number;
  /** A hash of items, options and order; null if another client started the batch. */
  readonly digest: string | null;
  readonly retryScope: RetryScope | null;
  readonly startedAt: string;
  readonly concurrency: number;
  readonly maxFailures: MaxFailures;
  readonly isPaused: boolean;
  /** The number of `runItems` activities so far, each of which ends with a report. */
  readonly rounds: number;
  /** The activity must not start the items from here on yet. */
  readonly startLimit: number;
  /**
   * Why the batch starts no further item. `interrupted`: an operator reset it, completed its activity or deleted its items.
   */
  readonly stopReason: 'max-failures' | 'cancelled' | 'cancel-running' | 'interrupted' | null;
  /** Since when an activity may be ahead of the board, in milliseconds since the epoch; null if the board is exact. */
  readonly roundStartedAt: number | null;
}

export type BatchMemo = BatchSettings & BatchBoard;

export function readBatchMemo(memo: JsonObject | undefined): BatchMemo | null {
  const value = memo?.[MEMO_BATCH];
  return isBatchBoard(value) ? (value as BatchMemo) : null;
}

export function boardFromMemo(memo: BatchMemo): BatchBoard {
  return pick(memo, BOARD_FIELDS);
}

export function pick<T, Name extends keyof T>(whole: T, names: readonly Name[]): Pick<T, Name> {
  return Object.fromEntries(names.map((name) => [name, whole[name]])) as unknown as Pick<T, Name>;
}

/** The chunks of a large batch, which batch ID, digest and number identify. The activity checks whether they exist. */
export const isChunks = objectOf({
  items: count,
  /** The number of the first item of each chunk, in the order of the start. */
  firsts: listOf(count),
});
type Chunks = Checked<typeof isChunks>;

export interface BatchSource {
  /** At most 1 MiB as JSON. */
  readonly items?: readonly FollowUpRequest[] | undefined;
  /** Instead of `items`. */
  readonly chunks?: Chunks | undefined;
}

/** Besides the items. Defaults: the batch ID of the workflow ID, a `concurrency` of 50, and otherwise null. */
export type BatchInputSettings = Pick<
  BatchMemo,
  'batchId' | 'concurrency' | 'maxFailures' | 'digest' | 'startedEarlier' | 'retryScope'
>;

/** The input of `followUpBatch`. */
export type BatchInput = BatchSource & Partial<BatchInputSettings>;

export interface BatchActivities {
  /** Starts the items and waits for them with retries, until the workflow must decide something or write the board. */
  runItems(input: Pick<BatchSource, 'chunks'>): Promise<BatchBoard>;
  /** Terminates the chunks, so that retention removes them together with the batch. */
  closeChunks(input: Pick<BatchSettings, 'batchId' | 'digest'> & { readonly chunks: Chunks }): Promise<void>;
}
