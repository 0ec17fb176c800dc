import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import {
  type CheckedLane,
  mergeStartedItems,
  startedItemsFromChecks,
  type StartedItems,
} from '../../batch/started-items';
import { SEND_PERMISSION_MS } from '../../contract/send-result';
import { eachConcurrently } from '../../temporal/each-concurrently';
import { findGrpcError, isTransient, isUnimplemented } from '../../temporal/grpc-status';
import { describeWorkflow, type RunState, toRunState } from '../../temporal/workflow-executions';
import { type BatchDescription, readBatchInput } from './describe';

/**
 * The time for which the activity of a run that was terminated or reset may still start items: the validity of its send
 * permission, and 5 s of reserve.
 */
export const MAX_LATE_START_MS = SEND_PERMISSION_MS + 5_000;

/**
 * Returns the items that were started by an ended run or by any run before it. If the run may have started items that its memo
 * does not show, the function first reads the state of these items from the Temporal server.
 */
export async function findStartedItems(
  client: Client,
  batch: BatchDescription,
  signal: AbortSignal,
): Promise<StartedItems> {
  const { startedAt, raw } = batch;
  const wasReset = Boolean(raw.workflowExtendedInfo?.lastResetTime);
  const { board, itemReader, count } = await readBatchInput(client, batch);
  const { activityStartedAt, lanes } = board;
  const started = mergeStartedItems(board, board.startedEarlier);
  if (!wasReset && activityStartedAt === null && lanes.every(({ state }) => state !== 'starting'))
    return started;
  await sleep(MAX_LATE_START_MS, undefined, { signal });
  // After a reset, the memo is as old as the reset point.
  const startLimit = wasReset ? count : Math.max(board.startLimit, started.cursor);
  const retentionMs = await readRetentionMs(client);
  const since = wasReset ? startedAt : (activityStartedAt ?? startedAt);
  // Retention may have removed items that were started, so every item before the limit counts as started.
  if (Date.now() - since >= retentionMs) return { cursor: startLimit, lanes: [] };
  const describeItem = async (item: number) => {
    const found = await describeWorkflow(client, (await itemReader.identify(item)).workflowId);
    return found && toRunState(found.status.name);
  };
  return checkStartedItems(started, startLimit, itemReader.findLaneEnd, describeItem);
}

/** The shortest retention that a Temporal server accepts by default (source: server 1.32, `namespaceMinRetentionLocal`). */
const SHORTEST_RETENTION_MS = 60 * 60_000;

/** Returns the retention of the namespace. If a gateway rejects the call, the shortest retention is assumed. */
async function readRetentionMs(client: Client): Promise<number> {
  const { namespace } = client.options;
  try {
    const { config } = await client.workflowService.describeNamespace({ namespace });
    return 1_000 * Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0);
  } catch (error) {
    const isRejected = isUnimplemented(error) || (findGrpcError(error) && !isTransient(error));
    if (!isRejected) throw error;
    return SHORTEST_RETENTION_MS;
  }
}

/**
 * Checks which items before `startLimit` were started. Each lane needs one request for each of its items up to the first item
 * that does not exist.
 *
 * @param describeItem returns null if the item does not exist
 */
export async function checkStartedItems(
  { cursor, lanes }: StartedItems,
  startLimit: number,
  findLaneEnd: (item: number) => Promise<number>,
  describeItem: (item: number) => Promise<RunState | null>,
): Promise<StartedItems> {
  const lanesToCheck = [...lanes];
  for (let next = cursor; next < startLimit; next = lanesToCheck.at(-1)?.end ?? startLimit)
    lanesToCheck.push({ next, end: await findLaneEnd(next), state: 'pending' });
  const checks: CheckedLane[] = [];
  await eachConcurrently(lanesToCheck, async (lane) => {
    let firstMissing = lane.next;
    let last: RunState | null = null;
    for (let found; firstMissing < lane.end && (found = await describeItem(firstMissing)); firstMissing += 1)
      last = found;
    checks.push({ lane, firstMissing, isLastRunning: last === 'running' });
  });
  return startedItemsFromChecks(cursor, checks);
}
