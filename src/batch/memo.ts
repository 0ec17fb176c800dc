import { type Checked, count, objectOf, type JsonObject, listOf } from '../contract/checks';
import type { RetryScope } from '../contract/outcome';
import type { FollowUpRequest } from '../contract/request';
import { type BatchBoard, BOARD_FIELDS, isBatchBoard } from './board';
import type { MaxFailures } from './items';

/**
 * The workflow type of a chunk, whose input has some items of a large batch. The start delay is a year. Usually, the chunk is
 * terminated before the delay has passed. Otherwise, the workflow runs after the delay and ends at once.
 */
export const CHUNK_WORKFLOW = 'followUpBatchItems';

/** The updates of a batch. `cancelRunning` cancels the batch and its running follow-ups. */
export type BatchUpdate = 'pause' | 'resume' | 'setConcurrency' | 'cancelRunning';

/** The memo key of a batch's {@link BatchMemo}. Clients read the memo without a worker. */
export const MEMO_BATCH = 'followUpBatch';

export interface BatchSettings {
  readonly batchId: string;
  /** The number of items. */
  readonly items: number;
  /** A hash of the items, their options and their order. The value is null if the client that started the batch wrote no hash. */
  readonly digest: string | null;
  readonly retryScope: RetryScope | null;
  readonly startedAt: string;
  readonly concurrency: number;
  readonly maxFailures: MaxFailures;
  readonly isPaused: boolean;
  /** The number of `runItems` activities that were started so far. */
  readonly activityCount: number;
  /** The number of the first item that the activity must not start yet. */
  readonly startLimit: number;
  /**
   * Why the batch starts no further items. The value is null while the batch starts items.
   *
   * - `max-failures`: more items failed than `maxFailures` allows.
   * - `cancelled`: the batch was cancelled, and its running follow-ups continue.
   * - `cancel-running`: the batch was cancelled, and its running follow-ups are cancelled too.
   * - `interrupted`: an operator reset the batch, completed its activity or deleted its items.
   */
  readonly stopReason: 'max-failures' | 'cancelled' | 'cancel-running' | 'interrupted' | null;
  /**
   * The start time of the latest activity, in milliseconds since the epoch, if the activity has not reported its board; otherwise
   * null. While the value is set, the board may lack items that were started. The value stays set if the batch ends without this
   * report.
   */
  readonly activityStartedAt: number | null;
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

/**
 * The chunks of a large batch. Their workflow IDs consist of batch ID, digest and number. The activity checks whether the chunks
 * exist.
 */
export const isChunks = objectOf({
  /** The number of items of all chunks. */
  items: count,
  /** The number of the first item of each chunk, in the order of the start. */
  firsts: listOf(count),
});
type Chunks = Checked<typeof isChunks>;

export interface BatchSource {
  /** The items in the order of the caller's list, with at most 1 MiB as JSON. */
  readonly items?: readonly FollowUpRequest[] | undefined;
  /** The chunks with the items. A batch has either `items` or `chunks`. */
  readonly chunks?: Chunks | undefined;
}

/**
 * The settings in the input. The default of `batchId` is the batch ID in the workflow ID, `concurrency` is 50, and the others are
 * null.
 */
export type BatchInputSettings = Pick<
  BatchMemo,
  'batchId' | 'concurrency' | 'maxFailures' | 'digest' | 'startedEarlier' | 'retryScope'
>;

/** The input of `followUpBatch`. */
export type BatchInput = BatchSource & Partial<BatchInputSettings>;

export interface BatchActivities {
  /**
   * Starts items and waits for their outcomes. The activity is retried until the workflow must decide something or write the
   * board.
   */
  runItems(input: Pick<BatchSource, 'chunks'>): Promise<BatchBoard>;
  /** Terminates the chunks, so that retention removes them together with the batch. */
  closeChunks(input: Pick<BatchSettings, 'batchId' | 'digest'> & { readonly chunks: Chunks }): Promise<void>;
}
