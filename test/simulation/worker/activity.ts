import type { Client } from '@temporalio/client';
import { encodeTimeoutType, noopMetricMeter } from '@temporalio/common';
import { loadDataConverter } from '@temporalio/common/lib/internal-non-workflow';
import { Activity } from '@temporalio/worker/lib/activity';
import { activityFailure, fromPayload, toMs, type Payload, type Resolution } from '../temporal/history';
import type { PendingActivity } from '../temporal/pending-activity';
import type { Run } from '../temporal/run';

const nothing = () => undefined;
const SILENT = { log: nothing, trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing };

/** One attempt, as the SDK runs it, without a codec. */
export function sdkActivity(
  info: object,
  fn: unknown,
  client: Client,
  heartbeat: (details: unknown) => void,
): Activity {
  const of = [info as never, fn as never, loadDataConverter(), { type: 'activity' } as never] as const;
  return new Activity(...of, undefined, heartbeat, client, SILENT, noopMetricMeter, []);
}

export function attemptInfo(activity: PendingActivity): object {
  const { options, run, seq, name, token, attempt, scheduledAt, attemptScheduledAt, details } = activity;
  return {
    ...activityInfo(run, seq, name, scheduledAt, token),
    ...{ attempt, taskQueue: options.taskQueue, currentAttemptScheduledTimestampMs: attemptScheduledAt },
    startToCloseTimeoutMs: toMs(options.startToCloseTimeout),
    heartbeatDetails: fromPayload(details?.[0]),
  };
}

/** What an activity knows of itself; a local one has no token. */
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

/** What the server says to a heartbeat, as the SDK's core tells it. @param answer undefined if it does not wait for the attempt */
export function cancelIfRequested(running: Activity, answer: ReturnType<PendingActivity['heartbeat']>): void {
  if (answer === undefined) running.cancel('NOT_FOUND', { notFound: true } as never);
  else if (answer.cancelRequested) running.cancel('CANCELLED', { cancelRequested: true } as never);
  else if (answer.activityPaused) running.cancel('PAUSED', { paused: true } as never);
  else if (answer.activityReset) running.cancel('RESET', { reset: true } as never);
}

/** How a local activity ends for its workflow. @param end undefined at its time-out */
export function localResolution(
  of: Parameters<typeof activityFailure>[0],
  end: Awaited<ReturnType<Activity['run']>> | undefined,
): Resolution {
  if (end?.completed) return { completed: { result: (end.completed.result as Payload | undefined) ?? null } };
  const timeoutFailureInfo = { timeoutType: encodeTimeoutType('START_TO_CLOSE') ?? null };
  const [message, cause] = end
    ? ['Local Activity failed', end.failed?.failure ?? {}]
    : ['Local Activity timed out', { message: 'timeout', timeoutFailureInfo }];
  return { failed: { failure: activityFailure(of, message, cause) } };
}
