import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { findSchedule } from './find-schedule';
import { type Overlap, overlapOf, policyOf } from './overlap';
import { batchIdOfFiring } from './schedule-id';

/** What a trigger came to. */
export interface Triggered {
  /** `waiting`: nothing was seen of it yet; it may be buffered behind a batch that runs. */
  readonly outcome: 'started' | 'skipped' | 'waiting';
  /** The batch that was started. */
  readonly batchId: string | null;
}

/** A trigger is carried out within milliseconds by a server that has the time. */
const SEEN_WITHIN_MS = 5_000;
const LOOK_EVERY_MS = 100;

/**
 * Lets a schedule fire now, and looks what becomes of it.
 *
 * @param overlap if a batch runs. @default the schedule's own
 * @throws ScheduleNotFoundError
 */
export async function triggerSchedule(
  client: Client,
  scheduleId: string,
  overlap: Overlap | undefined,
): Promise<Triggered> {
  const { info: before, policies } = await findSchedule(client, scheduleId);
  await untilNextSecond(before.recentActions.at(-1)?.takenAt);
  const known = new Set(before.recentActions.map(({ action }) => action.workflow.firstExecutionRunId));
  await client.schedule.getHandle(scheduleId).trigger(policyOf(overlap ?? overlapOf(policies.overlap)));
  const giveUpAt = Date.now() + SEEN_WITHIN_MS;
  while (Date.now() < giveUpAt) {
    const { info } = await findSchedule(client, scheduleId);
    const last = info.recentActions.at(-1)?.action.workflow;
    if (last !== undefined && !known.has(last.firstExecutionRunId))
      return { outcome: 'started', batchId: batchIdOfFiring(last.workflowId) };
    if (info.numActionsSkippedOverlap > before.numActionsSkippedOverlap)
      return { outcome: 'skipped', batchId: null };
    await sleep(LOOK_EVERY_MS);
  }
  return { outcome: 'waiting', batchId: null };
}

/**
 * A firing has the second in its batch id, and one in the second of another is dropped by the server without a word
 * (measured, server 1.31.2).
 */
async function untilNextSecond(last: Date | undefined): Promise<void> {
  const next = last === undefined ? 0 : Math.floor(last.getTime() / 1_000 + 1) * 1_000;
  await sleep(Math.min(Math.max(0, next - Date.now()), 1_000));
}
