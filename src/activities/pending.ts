import { Context } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import {
  type FollowUpActivities,
  isSendCheckpoint,
  readsBeforeAttempt,
  type SendRecord,
} from '../contract/activities';
import { pauseActivity, findPendingActivity } from '../temporal/sdk-internals';
import { currentRun } from './attempt';

/** The attempt that is pending has not reported its read. */
export const countPollReads: FollowUpActivities['countPollReads'] = async () => {
  const pending = await findPending(Context.current().client, 'pollJob');
  return readsBeforeAttempt(pending?.attempt ?? 1);
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
  const pending = await findPending(client, 'sendMessage');
  if (pending === undefined) return { kind: 'unknown' };
  // A running attempt reports by itself, and a pause would stop its timeout.
  if (pending.isStarted) return recordOf(pending.details, { kind: 'unknown' });
  await pauseActivity(client, currentRun(), pending.activityId ?? '', 'the follow-up gives up its send');
  const paused = await findPending(client, 'sendMessage');
  if (paused === undefined) return { kind: 'unknown' };
  return recordOf(paused.details, { kind: 'nothing' });
};

async function findPending(client: Client, type: 'pollJob' | 'sendMessage') {
  const { workflowId, runId } = currentRun();
  const description = await client.workflow.getHandle(workflowId, runId).describe();
  return findPendingActivity(client, description, type);
}

/** Another client can record anything as a heartbeat, and a POST may have been made all the same. */
function recordOf(details: unknown, withoutDetails: SendRecord): SendRecord {
  if (details === null || details === undefined) return withoutDetails;
  return isSendCheckpoint(details) ? { kind: 'checkpoint', ...details } : { kind: 'unknown' };
}
