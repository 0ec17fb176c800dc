import { defaultFailureConverter, defaultPayloadConverter } from '@temporalio/common';
import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  TemporalFailure,
  TimeoutFailure,
} from '@temporalio/workflow';
import {
  isJobResponse,
  isPollJobResult,
  isPollProgress,
  type JobResponse,
  type WorkerSettings,
} from '../../contract/activities';
import { POLL_AGAIN } from '../../contract/names';
import { singleLine } from '../../contract/text';
import type { FollowUpEvent } from '../../follow-up/apply';
import type { Step } from '../../follow-up/step';
import { activitySummary } from '../../follow-up/web-ui';
import { countPollReads, getJob, pollJob } from '../activity-proxies';
import { StoppableActivity } from '../stoppable-activity';
import type { FollowUpRun } from './run';

/** Reads the job once. Every failure becomes a response. Only a cancellation of the follow-up ends the read without a response. */
export async function performRead(
  step: Step,
  run: FollowUpRun,
  settings: WorkerSettings,
): Promise<FollowUpEvent | null> {
  const requestedAt = Date.now();
  const { plan, deadlineAt } = run.state;
  const { projectId, jobId } = plan;
  const summary = activitySummary(run.state, step);
  const read = new StoppableActivity<JobResponse>(run, () =>
    getJob(settings, { projectId, jobId }, deadlineAt - requestedAt, summary).then(
      (result: unknown) => (isJobResponse(result) ? result : MANUALLY_COMPLETED_READ),
      responseFromFailure,
    ),
  );
  await read.waitForEndOr(() => run.state.isCancelled);
  if (read.outcome !== undefined)
    return { kind: 'read ended', response: read.outcome, requestedAt, at: Date.now() };
  await read.stop();
  return null;
}

/** How `pollJob` ended. The value is null if the activity was cancelled. */
type PollOutcome = Pick<FollowUpEvent & { kind: 'poll ended' }, 'unchangedReads' | 'last'> | null;

/** Reads the job with `pollJob` until a response differs. An update or a cancellation stops the activity. */
export async function performPoll(
  step: Step & { do: 'poll' },
  run: FollowUpRun,
  settings: WorkerSettings,
): Promise<FollowUpEvent> {
  const before = run.state;
  const { projectId, jobId, polling } = before.plan;
  const { at: firstReadAt, lastState, pollingStartedAt, decidesAt } = step;
  const startedAt = Date.now();
  const input = {
    projectId,
    jobId,
    lastState,
    firstReadAt,
    decidesAt,
    pollingStartedAt,
    polling,
    pollsBefore: before.polls,
  };
  const summary = activitySummary(before, step);
  const poll = new StoppableActivity<PollOutcome>(run, () =>
    pollJob(settings, input, before.deadlineAt, summary).then(
      (result: unknown) => pollOutcomeFromResult(result, startedAt),
      (error: unknown) => pollOutcomeFromFailure(error, startedAt),
    ),
  );
  await poll.waitForEndOr(() => run.state !== before);
  const event = { kind: 'poll ended', status: lastState.status } as const;
  if (poll.outcome !== undefined && poll.outcome !== null)
    return { ...event, ...poll.outcome, isInterrupted: false, at: Date.now() };
  const unchangedReads = await countPollReads();
  // The poll may have ended with a response while its reads were counted.
  const pollOutcome = (await poll.stop()) ?? null;
  return {
    ...event,
    ...(pollOutcome ?? { unchangedReads, last: null }),
    isInterrupted: true,
    at: Date.now(),
  };
}

function pollOutcomeFromResult(result: unknown, startedAt: number): PollOutcome {
  const now = Date.now();
  if (!isPollJobResult(result))
    return { unchangedReads: 0, last: { response: MANUALLY_COMPLETED_READ, requestedAt: startedAt } };
  const { reads, response } = result;
  // The activity uses the Temporal server's clock, so the time is limited: the read was requested between the activity's start and
  // now.
  const requestedAt = Math.max(startedAt, Math.min(result.requestedAt, now));
  return { unchangedReads: Math.max(0, reads - 1), last: { response, requestedAt } };
}

/**
 * Returns the outcome of a failed `pollJob`. `responseFromFailure` lists the causes. The reads before the failure returned the known
 * job.
 */
function pollOutcomeFromFailure(error: unknown, startedAt: number): PollOutcome {
  if (!(error instanceof ActivityFailure)) throw error;
  if (error.cause instanceof CancelledFailure) return null;
  return {
    unchangedReads: countReadsBefore(error),
    last: { response: responseFromFailure(error), requestedAt: startedAt },
  };
}

/**
 * Returns the reads before a timeout. The Temporal server reports the latest attempt's failure, which has this number, as a
 * cause.
 */
function countReadsBefore(error: ActivityFailure): number {
  for (let cause: unknown = error.cause; cause instanceof TemporalFailure; cause = causeOf(cause)) {
    if (!isPollAgain(cause)) continue;
    const progress: unknown = cause.details?.[0];
    return isPollProgress(progress) ? progress.reads : 0;
  }
  return 0;
}

/** Returns the cause of a failure. SDK 1.24 does not convert the cause of a `TimeoutFailure`. */
function causeOf({ cause, failure }: TemporalFailure): unknown {
  if (cause !== undefined || !failure?.cause) return cause;
  try {
    return defaultFailureConverter.failureToError(failure.cause, defaultPayloadConverter);
  } catch {
    // The details have the encoding of a plugin's payload converter.
    return undefined;
  }
}

function isPollAgain(cause: unknown): cause is ApplicationFailure {
  return cause instanceof ApplicationFailure && cause.type === POLL_AGAIN;
}

/** The response if another client completed the read activity with a value that is not a response. */
const MANUALLY_COMPLETED_READ = {
  kind: 'failure',
  label: 'read_failed',
  message: 'another client completed the read activity with a value that is not a response about the job',
} as const satisfies JobResponse;

/**
 * Returns the response for a failed read activity. The cause is a timeout without a worker, another client that failed the activity,
 * or a bug.
 */
function responseFromFailure(error: unknown): JobResponse {
  if (!(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  // If the next attempt of `pollJob` would not fit in the timeout, the activity ends with the failure of its latest attempt.
  if (!(cause instanceof TimeoutFailure) && !isPollAgain(cause))
    return { ...MANUALLY_COMPLETED_READ, message: singleLine(cause?.message ?? error.message, 300) };
  const message =
    'no worker completed the read in time: no worker polls the task queue for reads, or a rate limit delays the read';
  return { kind: 'failure', label: 'no_worker', message };
}
