import { Context } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import {
  type FollowUpActivities,
  isSendCheckpoint,
  countReadsBeforeAttempt,
  type SendRecord,
} from '../contract/activities';
import { findPendingActivity, pauseActivity } from '../temporal/sdk-internals';
import { currentRun } from './attempt';

/** The attempt that is pending has not reported its read. */
export const countPollReads: FollowUpActivities['countPollReads'] = async () => {
  const pending = await findPendingOfRun(Context.current().client, 'pollJob');
  return countReadsBeforeAttempt(pending?.attempt ?? 1);
};

/**
 * Returns what a pending send has recorded, before the workflow cancels it: a cancelled activity in its back-off returns no
 * details, and nothing can be read afterwards.
 *
 * Only an attempt that is not running proves anything. It is paused first, because otherwise an attempt could start, send, and
 * fail to report right after the question. The Temporal server grants a paused activity no permission.
 */
export const stopSend: FollowUpActivities['stopSend'] = async () => {
  const { client } = Context.current();
  const pending = await findPendingOfRun(client, 'sendMessage');
  if (pending === undefined) return { kind: 'unknown' };
  // A running attempt reports by itself, and a pause would stop its timeout.
  if (pending.isStarted) return toSendRecord(pending.details, { kind: 'unknown' });
  await pauseActivity(client, currentRun(), pending.activityId ?? '', 'the follow-up gives up its send');
  const pausedActivity = await findPendingOfRun(client, 'sendMessage');
  if (pausedActivity === undefined) return { kind: 'unknown' };
  return toSendRecord(pausedActivity.details, { kind: 'nothing' });
};

async function findPendingOfRun(client: Client, type: 'pollJob' | 'sendMessage') {
  const { workflowId, runId } = currentRun();
  const description = await client.workflow.getHandle(workflowId, runId).describe();
  return findPendingActivity(client, description, type);
}

/** Another client can record anything as a heartbeat, and a POST may have been made all the same. */
function toSendRecord(details: unknown, withoutDetails: SendRecord): SendRecord {
  if (details === null || details === undefined) return withoutDetails;
  return isSendCheckpoint(details) ? { kind: 'checkpoint', ...details } : { kind: 'unknown' };
}
