import { type Checked, count, objectOf, listOf, literalOf, optional, text } from '../contract/checks';

const isLane = objectOf({
  /** The first item that has not ended. */
  next: count,
  /** The number after the last item of the job. This number identifies the lane. */
  end: count,
  /** The state of the item `next`: not started (`pending`), possibly started (`starting`), or started (`running`). */
  state: literalOf('pending', 'starting', 'running'),
  /** The ID of the ended run that is retried. */
  retriedRunId: optional(text),
});
/** The items of one job that have not ended. The items of a lane run one after another. */
export type Lane = Checked<typeof isLane>;

export const startedFields = {
  /** The number of the first item that is not in a lane yet. */
  cursor: count,
  lanes: listOf(isLane),
};

/** The started items: every item before the cursor, except for the items that a lane has not started yet. */
export const isStartedItems = objectOf(startedFields);
export type StartedItems = Checked<typeof isStartedItems>;

/** Returns whether an item was certainly started. */
export function isCertainlyStarted(started: StartedItems | null, item: number): boolean {
  if (started === null || item >= started.cursor) return false;
  const lane = started.lanes.find(({ next, end }) => next <= item && item < end);
  return lane === undefined || (lane.next === item && lane.state === 'running');
}

/** Returns the items that a run and the runs before it started. The run may have checked only some of the earlier items. */
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

/**
 * The maximum number of lanes in the memo and in each heartbeat. Normally, there are at most as many lanes as the largest
 * concurrency of the batch. There are more only if many items were deleted.
 */
const MAX_LANES = 2_000;

/** A lane that was checked item by item. */
export interface CheckedLane {
  readonly lane: Lane;
  /** The number of the first item from `lane.next` on that does not exist. */
  readonly firstMissing: number;
  /** Whether the last item that exists is running. */
  readonly isLastRunning: boolean;
}

/**
 * Returns the started items from checked lanes. The items of a lane start in order, so no item after a missing item was started.
 * Lanes that have ended and lanes after the last started lane are omitted, because otherwise there could be as many lanes as items.
 */
export function startedItemsFromChecks(cursor: number, checks: readonly CheckedLane[]): StartedItems {
  let furthest = cursor;
  const lanes: Lane[] = [];
  for (const { lane, firstMissing, isLastRunning } of checks) {
    const { next, end, state } = lane;
    if (firstMissing > next) furthest = Math.max(furthest, end);
    // A lane stays `running` if its next item was started and no longer exists, so that the item ends as `missing`.
    if (firstMissing === next) lanes.push({ next, end, state: state === 'running' ? state : 'pending' });
    else if (firstMissing < end || isLastRunning)
      lanes.push({ next: firstMissing - 1, end, state: 'running' });
  }
  const orderedLanes = lanes.filter(({ end }) => end <= furthest).sort((one, other) => one.next - other.next);
  // The items after the last lane start in the same way as in a first run: the Temporal server rejects the IDs that exist.
  return { cursor: orderedLanes[MAX_LANES]?.next ?? furthest, lanes: orderedLanes.slice(0, MAX_LANES) };
}
