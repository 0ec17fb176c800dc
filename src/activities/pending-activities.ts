import { Context } from '@temporalio/activity';
import { type FollowUpActivities, countReadsBeforeAttempt } from '../contract/activities';
import { toSendRecord } from '../contract/send-result';
import { singleLine } from '../contract/text';
import { readProtoField } from '../temporal/proto-field';
import { describePendingActivity, pauseActivity, STOP_SEND_REASON } from '../temporal/raw-requests';
import { currentRun, startTimer } from './attempt';

/**
 * Returns the reads that the pending `pollJob` has reported. The read of the pending attempt does not count, because it was not
 * reported.
 */
export const countPollReads: FollowUpActivities['countPollReads'] = async () => {
  const pending = await describePendingActivity(Context.current().client, currentRun(), 'pollJob');
  return countReadsBeforeAttempt(readProtoField(pending?.attempt) ?? 1);
};

/**
 * Returns the record of a pending send before the workflow cancels the send. A cancelled activity in its backoff returns no
 * heartbeat details, and after the cancellation the details can't be read.
 *
 * Only the record of a send without a running attempt proves that nothing was sent. The activity is paused first, because
 * otherwise an attempt could start, send, and fail to report right after the record was read. The Temporal server grants no
 * permission to a paused activity. If an attempt is running, this activity stops nothing.
 */
export const stopSend: FollowUpActivities['stopSend'] = async () => {
  const { client, info } = Context.current();
  const elapsedMs = startTimer();
  const run = currentRun();
  const pending = await describePendingActivity(client, run, 'sendMessage');
  if (pending === undefined) return { kind: 'unknown' };
  // A running attempt is not paused, because it reports its result, and a pause would stop its timeout.
  if (pending.isStarted) return toSendRecord(pending.details, { kind: 'unknown' });
  // The workflow waits no longer than the timeout. The pending send may then be a later one, for example if this process was
  // frozen.
  if (elapsedMs() > info.startToCloseTimeoutMs) return { kind: 'unknown' };
  await pauseActivity(client, run, pending.activityId ?? '', STOP_SEND_REASON);
  const pausedActivity = await describePendingActivity(client, run, 'sendMessage');
  if (pausedActivity === undefined) return { kind: 'unknown' };
  const lastFailure = pausedActivity.lastFailure?.message;
  return toSendRecord(pausedActivity.details, {
    kind: 'nothing',
    ...(lastFailure && { lastFailure: singleLine(lastFailure, 300) }),
  });
};
