import type { Client } from '@temporalio/client';
import { encodeTimeoutType, noopMetricMeter } from '@temporalio/common';
import { loadDataConverter } from '@temporalio/common/lib/internal-non-workflow';
import { Activity } from '@temporalio/worker/lib/activity';
import { activityFailure, fromPayload, toMs, type Payload, type Resolution } from '../temporal/history';
import type { PendingActivity } from '../temporal/pending-activity';
import type { Run } from '../temporal/run';

const nothing = () => undefined;
const SILENT = { log: nothing, trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing };

/** Creates one attempt of an activity with the SDK's own class, without a payload codec. */
export function sdkActivity(
  info: object,
  fn: unknown,
  client: Client,
  heartbeat: (details: unknown) => void,
): Activity {
  const attempt = [info as never, fn as never, loadDataConverter(), { type: 'activity' } as never] as const;
  return new Activity(...attempt, undefined, heartbeat, client, SILENT, noopMetricMeter, []);
}

/** Returns the information about one attempt that the activity function gets. */
export function attemptInfo(activity: PendingActivity): object {
  const { options, run, seq, name, token, attempt, scheduledAt, attemptScheduledAt, details } = activity;
  return {
    ...activityInfo(run, seq, name, scheduledAt, token),
    ...{ attempt, taskQueue: options.taskQueue, currentAttemptScheduledTimestampMs: attemptScheduledAt },
    startToCloseTimeoutMs: toMs(options.startToCloseTimeout),
    heartbeatDetails: fromPayload(details?.[0]),
  };
}

/** Returns the information that an activity function gets. A local activity has no task token. */
export function activityInfo(
  { runId, start: { workflowId, taskQueue } }: Run,
  seq: number,
  activityType: string,
  scheduledAt: number,
  base64TaskToken = '',
): object {
  return {
    ...{ activityId: String(seq), activityType, attempt: 1, taskQueue, namespace: 'default' },
    ...{ scheduledTimestampMs: scheduledAt, currentAttemptScheduledTimestampMs: scheduledAt },
    ...{ taskToken: Buffer.from(base64TaskToken), base64TaskToken },
    ...{ inWorkflow: true, workflowExecution: { workflowId, runId } },
  };
}

/**
 * Cancels the attempt like the SDK's core, depending on the response to a heartbeat.
 *
 * @param response the reply to the heartbeat; undefined if the Temporal server does not wait for the attempt
 */
export function cancelIfRequested(
  running: Activity,
  response: ReturnType<PendingActivity['heartbeat']>,
): void {
  if (response === undefined) running.cancel('NOT_FOUND', { notFound: true } as never);
  else if (response.cancelRequested) running.cancel('CANCELLED', { cancelRequested: true } as never);
  else if (response.activityPaused) running.cancel('PAUSED', { paused: true } as never);
  else if (response.activityReset) running.cancel('RESET', { reset: true } as never);
}

/** Returns the end of a local activity for its workflow. @param end undefined if the activity timed out */
export function localResolution(
  activity: Parameters<typeof activityFailure>[0],
  end: Awaited<ReturnType<Activity['run']>> | undefined,
): Resolution {
  if (end?.completed) return { completed: { result: (end.completed.result as Payload | undefined) ?? null } };
  const timeoutFailureInfo = { timeoutType: encodeTimeoutType('START_TO_CLOSE') ?? null };
  const [message, cause] = end
    ? ['Local Activity failed', end.failed?.failure ?? {}]
    : ['Local Activity timed out', { message: 'timeout', timeoutFailureInfo }];
  return { failed: { failure: activityFailure(activity, message, cause) } };
}
