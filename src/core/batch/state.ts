import { type Checked, count, fields, type JsonObject, listOf, mapOf, oneOf, orNull, text } from '../checks';
import { type End, endFields, isFailure, type TryAgain } from '../end';
import { isTerminal } from '../job';
import type { FollowUpRequest } from '../request';
import { addCounts } from '../response-counts';
import type { Tolerance } from './items';

/** Holds a part of a large batch's items in its input. By its start delay no worker runs it. */
export const CHUNK_WORKFLOW = 'followUpBatchItems';

/** The updates of a batch. `cancelRunning` ends it like a cancellation, and its open follow-ups too. */
export type BatchUpdate = 'pause' | 'resume' | 'setConcurrency' | 'cancelRunning';

/** Where a batch keeps its {@link BatchMemo}, which is read without a worker. */
export const MEMO_BATCH = 'followUpBatch';

/** The items of one job that have not ended, by their numbers. `next` was not begun (`free`), may have been, or was. */
export type Lane = readonly [next: number, end: number, state: 'free' | 'may' | 'open'];

const isLane = (value: unknown): value is Lane =>
  Array.isArray(value) && count(value[0]) && count(value[1]) && oneOf('free', 'may', 'open')(value[2]);

const begunFields = {
  /** The items from here on are in no lane yet. */
  cursor: count,
  /** Of the items before the cursor, those that are not settled. */
  lanes: listOf(isLane),
};

/** What was begun: everything before the cursor that is not free in a lane. */
export const isBegun = fields(begunFields);
export type Begun = Checked<typeof isBegun>;

const countFields = {
  settled: count,
  byStatus: mapOf(count),
  byFailure: mapOf(count),
  byEvidence: mapOf(count),
  unknownDeliveries: count,
  firstFailures: listOf(fields({ workflowId: text, outcome: endFields.outcome, message: endFields.message })),
};

export const COUNTS = Object.keys(countFields) as (keyof typeof countFields)[];

const positionFields = {
  ...begunFields,
  ...countFields,
  /** Follow-ups of the batch that run, by the latest look. */
  open: count,
  begun: orNull(isBegun),
};

/** How far a batch is. The activity moves it on; the workflow keeps it. */
export const isPosition = fields(positionFields);
export type Position = Checked<typeof isPosition>;

export const START: Position & Pick<BatchMemo, 'bound' | 'movingSince'> = {
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
  bound: 0,
  movingSince: null,
};

export function isIdle({ lanes }: Position): boolean {
  return lanes.every(([, , state]) => state === 'free');
}

export function positionOf(memo: BatchMemo): Position {
  return pick(memo, Object.keys(positionFields) as (keyof Position)[]);
}

export function pick<T, Name extends keyof T>(whole: T, names: readonly Name[]): Pick<T, Name> {
  return Object.fromEntries(names.map((name) => [name, whole[name]])) as unknown as Pick<T, Name>;
}

const MAX_FIRST_FAILURES = 20;

export function withEnd(position: Position, workflowId: string, end: End): Position {
  const { outcome, evidence, delivery, message } = end;
  const { byEvidence, firstFailures } = position;
  const isNamed = isFailure(end) && firstFailures.length < MAX_FIRST_FAILURES;
  const by = isTerminal(outcome) ? 'byStatus' : 'byFailure';
  return {
    ...position,
    settled: position.settled + 1,
    [by]: addCounts(position[by], { [outcome]: 1 }),
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

/** What a run and those before it have certainly begun: it may have walked over only a part of what those had. */
export function begunBy({ cursor, lanes, begun }: Position): Begun {
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

export interface BatchSettings {
  readonly batchId: string;
  readonly items: number;
  /** Of items, options and order; null where no client of ours has made it. */
  readonly digest: string | null;
  readonly again: TryAgain | null;
  readonly startedAt: string;
  readonly concurrency: number;
  readonly tolerate: Tolerance;
  readonly paused: boolean;
  /** How often the activity was asked. */
  readonly rounds: number;
  /** The items from here on were not begun. */
  readonly bound: number;
  /** Why it starts no further item. `broken-off`: somebody has reset it, ended its activity or deleted its items. */
  readonly ending: 'tolerance' | 'cancelled' | 'cancel-running' | 'broken-off' | null;
  /** Since when an activity may be further than the position, in milliseconds since the epoch; null where it is exact. */
  readonly movingSince: number | null;
}

export type BatchMemo = BatchSettings & Position;

export function batchMemo(memo: JsonObject | undefined): BatchMemo | null {
  const value = memo?.[MEMO_BATCH];
  return isPosition(value) ? (value as BatchMemo) : null;
}

/** As {@link isFailure}, of all. */
export function failuresOf({ settled, byStatus }: Position): number {
  return settled - (byStatus.completed ?? 0) - (byStatus.archived ?? 0);
}

export function isBeyondTolerance(
  { tolerate, items }: Pick<BatchSettings, 'tolerate' | 'items'>,
  position: Position,
): boolean {
  if (tolerate === null) return false;
  // In floating point 29 % of 100 are less than 29.
  const tolerated = 'items' in tolerate ? tolerate.items : (tolerate.percent * items) / 100 + 1e-6;
  return failuresOf(position) > tolerated;
}

/** The parts of a large batch, named by batch id, digest and number. The activity finds whether they are there. */
export const isChunks = fields({
  items: count,
  /** The number of the first item of each chunk, in the order of the start. */
  firsts: listOf(count),
});
export type Chunks = Checked<typeof isChunks>;

export interface BatchSource {
  /** At most 1 MiB as JSON. */
  readonly items?: readonly FollowUpRequest[] | undefined;
  /** In place of `items`. */
  readonly chunks?: Chunks | undefined;
}

/** Beside the items. Defaults: the batch id of the workflow id, a `concurrency` of 50, and else null. */
export type BatchGiven = Pick<
  BatchMemo,
  'batchId' | 'concurrency' | 'tolerate' | 'digest' | 'begun' | 'again'
>;

/** The input of `followUpBatch`. */
export type BatchInput = BatchSource & Partial<BatchGiven>;

export interface BatchActivities {
  /** Starts the items and waits for them, by retries, until the workflow has something to decide or to write down. */
  runItems(input: Pick<BatchSource, 'chunks'>): Promise<Position>;
  /** Ends the chunks with their batch, so that the server forgets them with it. */
  closeChunks(input: Pick<BatchSettings, 'batchId' | 'digest'> & { readonly chunks: Chunks }): Promise<void>;
}
