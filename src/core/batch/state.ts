import {
  boolean,
  type Checked,
  count,
  fields,
  type JsonObject,
  listOf,
  mapOf,
  oneOf,
  orNull,
  text,
} from '../checks';
import { type End, endFields, isFailure, type Outcome, type TryAgain } from '../end';
import { isTerminal } from '../job';
import type { FollowUpRequest } from '../request';
import { addCounts } from '../tally';
import type { Tolerance } from './items';

/** Holds a part of a large batch's items. It waits by a start delay, so that no worker runs it before the batch has ended. */
export const CHUNK_WORKFLOW = 'followUpBatchItems';

/** The updates of a batch. `cancelRunning` ends it like a cancellation, and its open follow-ups too. */
export type BatchUpdate = 'pause' | 'resume' | 'setConcurrency' | 'cancelRunning';

/** Where a batch keeps its {@link BatchMemo}: it outlives the batch's worker, and is read without one. */
export const MEMO_BATCH = 'followUpBatch';

/**
 * The items of one job that are not settled, by their numbers in the order of the start, the last one excluded. Of `next`:
 * `free`, it was not begun; `may`, its follow-up may have been started; `open`, it was.
 */
export type Lane = readonly [next: number, end: number, state: 'free' | 'may' | 'open'];

const isLane = (value: unknown): value is Lane =>
  Array.isArray(value) && count(value[0]) && count(value[1]) && oneOf('free', 'may', 'open')(value[2]);

const begunFields = {
  /** The items from here on are in no lane yet. */
  cursor: count,
  /** Of the items before the cursor, those that are not settled. */
  lanes: listOf(isLane),
};

/** What the runs of a batch before this one have begun: everything before the cursor that is not free in a lane. */
export const isBegun = fields(begunFields);
export type Begun = Checked<typeof isBegun>;

const isFailedItem = fields({ workflowId: text, outcome: endFields.outcome, message: endFields.message });
export type FailedItem = Checked<typeof isFailedItem>;

const countFields = {
  settled: count,
  byStatus: mapOf(count),
  byFailure: mapOf(count),
  byEvidence: mapOf(count),
  unknownDeliveries: count,
};

/** How far a batch is. The activity that runs its items moves it on; the workflow keeps it. */
export const isPosition = fields({
  ...begunFields,
  ...countFields,
  /** At most 20. */
  firstFailures: listOf(isFailedItem),
  /** Follow-ups of the batch that run, by the latest look. */
  open: count,
  begun: orNull(isBegun),
});
export type Position = Checked<typeof isPosition>;

export const START: Position = {
  cursor: 0,
  lanes: [],
  settled: 0,
  byStatus: {},
  byFailure: {},
  byEvidence: {},
  unknownDeliveries: 0,
  firstFailures: [],
  open: 0,
  begun: null,
};

/** How far a batch is, of all that it has written down. */
export function positionOf(memo: BatchMemo): Position {
  const names = Object.keys(START) as (keyof Position)[];
  return Object.fromEntries(names.map((name) => [name, memo[name]])) as unknown as Position;
}

/** Failures that a summary names. */
const MAX_FIRST_FAILURES = 20;

export function withEnd(position: Position, workflowId: string, end: End): Position {
  const { outcome, evidence, delivery, message } = end;
  const one = { [outcome]: 1 };
  const { byStatus, byFailure, byEvidence, firstFailures } = position;
  const isNamed = isFailure(end) && firstFailures.length < MAX_FIRST_FAILURES;
  return {
    ...position,
    settled: position.settled + 1,
    byStatus: isTerminal(outcome) ? addCounts(byStatus, one) : byStatus,
    byFailure: isTerminal(outcome) ? byFailure : addCounts(byFailure, one),
    byEvidence: evidence === null ? byEvidence : addCounts(byEvidence, { [evidence]: 1 }),
    unknownDeliveries: position.unknownDeliveries + (delivery === 'unknown' ? 1 : 0),
    firstFailures: isNamed ? [...firstFailures, { workflowId, outcome, message }] : firstFailures,
  };
}

/** Whether the runs before this one have begun an item. */
export function wasBegun(begun: Begun | null, item: number): boolean {
  if (begun === null || item >= begun.cursor) return false;
  const lane = begun.lanes.find(([next, end]) => next <= item && item < end);
  return lane === undefined || (lane[0] === item && lane[2] === 'open');
}

/** What a run and those before it have certainly begun: one that was ended early has walked over a part of what those had. */
export function begunBy({ cursor, lanes, begun }: Pick<Position, 'cursor' | 'lanes' | 'begun'>): Begun {
  if (begun === null) return { cursor, lanes };
  const notWalked = begun.lanes.filter(([, end]) => end > cursor);
  const walked = lanes.flatMap((lane): Lane[] => {
    if (lane[1] > begun.cursor) return [lane];
    const earlier = begun.lanes.find(([, end]) => end === lane[1]);
    // The earlier run came to the end of the lane.
    if (earlier === undefined) return [];
    const isFurther = earlier[0] > lane[0] || (earlier[0] === lane[0] && earlier[2] === 'open');
    return [isFurther ? earlier : lane];
  });
  return { cursor: Math.max(cursor, begun.cursor), lanes: [...walked, ...notWalked] };
}

/** How a batch is to run, as its callers and operators say it. */
export interface BatchSettings {
  readonly batchId: string;
  readonly items: number;
  /** The SHA-256 of items, options and order, in hexadecimal digits; null where no client of ours has made it. */
  readonly digest: string | null;
  readonly again: TryAgain | null;
  readonly startedAt: string;
  readonly concurrency: number;
  readonly tolerate: Tolerance;
  readonly paused: boolean;
  /** The items from here on were not begun. */
  readonly bound: number;
  /**
   * Why it starts no further item: it has failed beyond its tolerance, somebody cancels it, or with its open follow-ups,
   * somebody has reset it, or ended its activity, or deleted its items.
   */
  readonly ending: 'tolerance' | 'cancelled' | 'cancel-running' | 'broken-off' | null;
  /**
   * When the activity was started that may be further than the position, in milliseconds since the epoch; null where none
   * runs, so that the position is exact.
   */
  readonly movingSince: number | null;
}

export type BatchMemo = BatchSettings & Position;

const isSettings = fields({
  batchId: text,
  items: count,
  concurrency: count,
  bound: count,
  startedAt: text,
  paused: boolean,
});

/** The memo of a batch, whoever has written it; null for none. */
export function batchMemo(memo: JsonObject | undefined): BatchMemo | null {
  const value = memo?.[MEMO_BATCH];
  return isSettings(value) && isPosition(value) ? (value as BatchMemo) : null;
}

export function failuresOf({ byStatus, byFailure }: Pick<Position, 'byStatus' | 'byFailure'>): number {
  const ends = Object.entries({ ...byStatus, ...byFailure });
  const failed = ends.filter(([outcome]) => isFailure({ outcome: outcome as Outcome }));
  return failed.reduce((sum, [, times]) => sum + times, 0);
}

export function isBeyondTolerance(
  { tolerate, items }: Pick<BatchSettings, 'tolerate' | 'items'>,
  position: Position,
): boolean {
  if (tolerate === null) return false;
  // A percentage is of all items. In floating point 29 % of 100 are less than 29.
  const tolerated = 'items' in tolerate ? tolerate.items : (tolerate.percent * items) / 100 + 1e-6;
  return failuresOf(position) > tolerated;
}

/** The input of `followUpBatch`: its items where they fit into one payload, or the chunks that a client has stored before. */
export interface BatchInput {
  /** @default the workflow id without `follow-up-batch:` */
  readonly batchId?: string;
  /** How many follow-ups are open at a time: 1 to 1,000. @default 50 */
  readonly concurrency?: number;
  /** Beyond it no further item is started, and the batch fails. @default null, no limit */
  readonly tolerate?: Tolerance;
  /** At most 1 MiB as JSON. */
  readonly items?: readonly FollowUpRequest[];
  /** In place of `items`. */
  readonly chunks?: Chunks;
  readonly digest?: string | null;
  /** What the runs of this batch before this one may have begun. @default null, it is the first */
  readonly begun?: Begun | null;
  /** @default null, what has ended keeps its end */
  readonly again?: TryAgain | null;
}

/** The input of the activity that runs a batch's items. */
export interface RunItemsInput {
  readonly chunks?: Chunks | undefined;
  readonly position: Position;
  /** How often the workflow has asked before. */
  readonly rounds: number;
}

/** The activities of a batch. */
export interface BatchActivities {
  /**
   * Starts the items of a batch and waits for them, as retries of itself, until the workflow has something to decide or to
   * write down: at the latest when 200 items were begun.
   */
  runItems(input: RunItemsInput): Promise<Position>;
  /** Ends the chunks of a batch that has ended, so that the server forgets them with it. */
  closeChunks(input: Pick<BatchSettings, 'batchId' | 'digest'> & { readonly chunks: Chunks }): Promise<void>;
}

/** Where the items of a large batch are: in workflows whose ids are made of batch id, digest and number. */
export interface Chunks {
  readonly items: number;
  /** The number of the first item of each chunk, in the order of the start. */
  readonly firsts: readonly number[];
}
