import type { Client } from '@temporalio/client';
import { type LoadedDataConverter, noopMetricMeter } from '@temporalio/common';
import { loadDataConverter } from '@temporalio/common/lib/internal-non-workflow';
import { temporal } from '@temporalio/proto';
import { Activity } from '@temporalio/worker/lib/activity';
import { activityFailure, fromPayload, msOf, type Payload, type Resolution } from '../temporal/history';
import type { PendingActivity } from '../temporal/pending-activity';
import type { Run } from '../temporal/run';

const { TimeoutType } = temporal.api.enums.v1;

const nothing = () => undefined;
const SILENT = { log: nothing, trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing };

/** The data converter of the SDK, without a codec. */
const CONVERTER: LoadedDataConverter = loadDataConverter();

/** One attempt, as the SDK runs it. */
export function sdkActivity(
  info: object,
  fn: unknown,
  client: Client,
  heartbeat: (details: unknown) => void,
): Activity {
  return new Activity(
    info as never,
    fn as never,
    CONVERTER,
    { type: 'activity', namespace: 'default' } as never,
    undefined,
    heartbeat,
    client,
    SILENT,
    noopMetricMeter,
    [],
  );
}

export function infoOfAttempt(activity: PendingActivity): object {
  const { options, run, seq, name, token, attempt, scheduledAt, attemptScheduledAt, details } = activity;
  return {
    ...infoOf(run, seq, name, scheduledAt, token),
    ...{ attempt, taskQueue: options.taskQueue, currentAttemptScheduledTimestampMs: attemptScheduledAt },
    scheduleToCloseTimeoutMs: msOf(options.scheduleToCloseTimeout),
    startToCloseTimeoutMs: msOf(options.startToCloseTimeout),
    heartbeatTimeoutMs: msOf(options.heartbeatTimeout) || undefined,
    heartbeatDetails: fromPayload(details?.[0]),
  };
}

/** What an activity knows of itself; a local one has no token. */
export function infoOf(
  { runId, start: { workflowId, workflowType, taskQueue } }: Run,
  seq: number,
  activityType: string,
  scheduledAt: number,
  base64TaskToken = '',
): object {
  return {
    ...{ activityId: String(seq), activityType, attempt: 1, taskQueue },
    ...{ scheduledTimestampMs: scheduledAt, currentAttemptScheduledTimestampMs: scheduledAt },
    ...{ taskToken: Buffer.from(base64TaskToken), base64TaskToken, isLocal: base64TaskToken === '' },
    ...{ namespace: 'default', activityNamespace: 'default', inWorkflow: true },
    ...{ workflowExecution: { workflowId, runId }, workflowType },
  };
}

/** What the server says to a heartbeat, as the SDK's core tells it. @param answer undefined if it does not wait for the attempt */
export function cancelBy(running: Activity, answer: ReturnType<PendingActivity['heartbeat']>): void {
  if (answer === undefined) running.cancel('NOT_FOUND', { notFound: true } as never);
  else if (answer.cancelRequested) running.cancel('CANCELLED', { cancelRequested: true } as never);
  else if (answer.activityPaused) running.cancel('PAUSED', { paused: true } as never);
  else if (answer.activityReset) running.cancel('RESET', { reset: true } as never);
}

/** How a local activity ends for its workflow. @param end undefined at its time-out */
export function localEnd(
  seq: number,
  name: string,
  end: Awaited<ReturnType<Activity['run']>> | undefined,
): Resolution {
  if (end?.completed) return { completed: { result: (end.completed.result as Payload | undefined) ?? null } };
  const timeout = {
    message: 'timeout',
    timeoutFailureInfo: { timeoutType: TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE },
  };
  const [message, cause] = end
    ? ['Local Activity failed', end.failed?.failure ?? {}]
    : ['Local Activity timed out', timeout];
  return { failed: { failure: activityFailure({ seq, name }, message, cause, 'UNSPECIFIED') } };
}
