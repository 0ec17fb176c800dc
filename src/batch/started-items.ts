import { type Checked, count, objectOf, listOf, literalOf, optional, text } from '../contract/checks';

const isLane = objectOf({
  /** The first item that has not ended. */
  next: count,
  /** The number after the last item of the job. It identifies the lane. */
  end: count,
  /** Of the item `next`: it was not started, may have been started, or was started. */
  state: literalOf('pending', 'starting', 'running'),
  /** The run that ended and is retried. */
  retriedRunId: optional(text),
});
/** The items of one job that have not ended. They run one after another. */
export type Lane = Checked<typeof isLane>;

export const startedFields = {
  /** The first item that is in no lane yet. */
  cursor: count,
  lanes: listOf(isLane),
};

/** Every item before the cursor was started, except for the items that a lane has not started yet. */
export const isStartedItems = objectOf(startedFields);
export type StartedItems = Checked<typeof isStartedItems>;

/** Whether an item was certainly started. */
export function isCertainlyStarted(started: StartedItems | null, item: number): boolean {
  if (started === null || item >= started.cursor) return false;
  const lane = started.lanes.find(({ next, end }) => next <= item && item < end);
  return lane === undefined || (lane.next === item && lane.state === 'running');
}

/** The items that a run and the runs before it started. The run may have checked only a part of the earlier items. */
export function mergeStartedItems(
  { cursor, lanes }: StartedItems,
  earlier: StartedItems | null,
): StartedItems {
  if (earlier === null) return { cursor, lanes };
  const unchecked = earlier.lanes.filter(({ end }) => end > cursor);
  const checked = lanes.flatMap((lane): Lane[] => {
    if (lane.end > earlier.cursor) return [lane];
    const earlierLane = earlier.lanes.find(({ end }) => end === lane.end);
    // The earlier runs started every item of the lane.
    if (earlierLane === undefined) return [];
    const isFurther =
      earlierLane.next > lane.next || (earlierLane.next === lane.next && earlierLane.state === 'running');
    return [isFurther ? earlierLane : lane];
  });
  return { cursor: Math.max(cursor, earlier.cursor), lanes: [...checked, ...unchecked] };
}

/** The number of lanes in the memo and in each heartbeat. It is larger than the concurrency only if many items were deleted. */
const MAX_LANES = 2_000;

/** A lane that was checked item by item. */
export interface CheckedLane {
  readonly lane: Lane;
  /** The first item from `lane.next` on that does not exist. */
  readonly firstMissing: number;
  /** Whether the last item that exists is running. */
  readonly isLastRunning: boolean;
}

/**
 * The items that were started, after the lanes of items that may have been started were checked. Items of a lane start in their
 * order, so no item after a missing one was started. Lanes that have ended, and lanes after the last one that was started, are
 * left out: otherwise, there could be as many lanes as items.
 */
export function startedItemsFromChecks(cursor: number, checks: readonly CheckedLane[]): StartedItems {
  let furthest = cursor;
  const lanes: Lane[] = [];
  for (const { lane, firstMissing, isLastRunning } of checks) {
    const { next, end, state } = lane;
    if (firstMissing > next) furthest = Math.max(furthest, end);
    // An item that is known to be started and does not exist is missing.
    if (firstMissing === next) lanes.push({ next, end, state: state === 'running' ? state : 'pending' });
    else if (firstMissing < end || isLastRunning)
      lanes.push({ next: firstMissing - 1, end, state: 'running' });
  }
  const orderedLanes = lanes.filter(({ end }) => end <= furthest).sort((one, other) => one.next - other.next);
  // The items after the last lane are started by their IDs, as in a first run.
  return { cursor: orderedLanes[MAX_LANES]?.next ?? furthest, lanes: orderedLanes.slice(0, MAX_LANES) };
}
