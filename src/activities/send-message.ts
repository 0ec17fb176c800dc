import { Context } from '@temporalio/activity';
import { ActivityPausedError, ActivityResetError } from '@temporalio/client';
import type { AgentApi } from '../agent-api/client';
import { type FollowUpActivities, type SendInput } from '../contract/activities';
import {
  createUnreportedOutcome,
  REPORT_MARGIN_MS,
  SEND_PERMISSION_MS,
  type SendCheckpoint,
  type SendOutcome,
} from '../contract/send-result';
import type { AgentJob } from '../contract/job';
import { singleLine } from '../contract/text';
import { decideSend } from '../follow-up/evidence';
import { toSerializationContext } from '../temporal/raw-requests';
import { currentRun, pollAgainError, serverClock, startTimer } from './attempt';
import { acquireJobLock } from './job-lock';

/** The interval until the next attempt, which is also the interval of the send's retry policy. */
const RETRY_MS = 5_000;

const RESET_MESSAGE =
  'this run was reset to a point before its send, and the run before the reset may have sent the message';
const EARLIER_ATTEMPT_MESSAGE =
  'an earlier attempt of the send may have sent the message, but did not report its result';

/**
 * Creates the activity `sendMessage`, which is the only code that sends a message. The activity makes no POST that an earlier
 * attempt or the run before a reset may have made. The heartbeat details show an earlier attempt, and the run ID shows a reset. A
 * POST in progress ignores cancellation and shutdown, because its outcome is worth more than the seconds that it takes.
 */
export function createSendMessage(agentApi: AgentApi): FollowUpActivities['sendMessage'] {
  return async (input) => {
    const { client, info } = Context.current();
    const earlierCheckpoint = info.heartbeatDetails as SendCheckpoint | null | undefined;
    if (earlierCheckpoint) {
      const outcome = {
        kind: 'posted',
        ...earlierCheckpoint,
        outcome: createUnreportedOutcome(EARLIER_ATTEMPT_MESSAGE),
      } as const;
      return { outcome, lockRunId: null };
    }
    const startedTick = performance.now();
    let lockRunId: string | null = null;
    if (input.whenActive === 'wait') {
      const { workflowId } = currentRun();
      const holder = { workflowId, firstRunId: input.firstRunId };
      const lock = await acquireJobLock(client, input, holder, info.taskQueue);
      if (lock.kind === 'held')
        return { outcome: await returnUnlessPaused({ kind: 'lock-held', holder: lock.holder }), lockRunId };
      ({ lockRunId } = lock);
    }
    const outcome = await readAndPost(agentApi, input, startedTick);
    return { outcome: await returnUnlessPaused(outcome), lockRunId };
  };
}

/** Reads the job and makes the POST if it is allowed. @param startedTick when the attempt started, by `performance.now()` */
async function readAndPost(agentApi: AgentApi, input: SendInput, startedTick: number): Promise<SendOutcome> {
  const attemptMs = Context.current().info.startToCloseTimeoutMs;
  const requestMs = Math.max(1_000, (attemptMs - REPORT_MARGIN_MS) / 2);
  const serverTime = serverClock();
  const read = await agentApi.getJob(input, { timeoutMs: requestMs });
  if (currentRun().runId !== input.permittedRunId) {
    const baseline = read.kind === 'job' ? read.job : null;
    return { kind: 'reset', baseline, label: 'reset', message: RESET_MESSAGE };
  }
  if (read.kind === 'failure') return { ...read, kind: 'not-read' };
  const { job } = read;
  if (decideSend(job, input.whenActive, input.earlierBaseline) !== 'send')
    return { kind: 'job-not-ready', job };
  const cooldown = agentApi.cooldown(input.projectId);
  if (cooldown !== null) return { ...cooldown, kind: 'postponed', job };
  // This clock is late if the attempt waited in its task queue. The cancellation at the deadline then rejects the permission.
  if (serverTime() >= input.deadlineAt)
    return createPostponedOutcome(job, 'deadline', 'the deadline passed before the send');
  // The attempt's timeout must not end a POST that could still receive its response.
  const leftMs = attemptMs - (performance.now() - startedTick);
  if (leftMs < requestMs + SEND_PERMISSION_MS)
    return createPostponedOutcome(
      job,
      'late',
      'the Temporal server or the baseline read took too long, so nothing was sent; the worker tries again',
    );

  const checkpoint = { baseline: job, sentAt: Date.now() };
  const permission = await requestSendPermission(checkpoint).catch(toRejectionReason);
  if (typeof permission === 'string') return createPostponedOutcome(job, 'not_permitted', permission);
  const outcome = await agentApi
    .sendMessage(input, {
      timeoutMs: requestMs,
      beforeFirstByte: () => {
        checkpoint.sentAt = Date.now();
        if (permission() <= 0) return 'connecting took longer than the send permission is valid';
        return serverTime() < input.deadlineAt ? undefined : 'the deadline passed while connecting';
      },
    })
    .catch((error: unknown) =>
      createUnreportedOutcome(`the send failed with an unexpected error (${String(error)})`),
    );
  return { kind: 'posted', ...checkpoint, outcome };
}

function createPostponedOutcome(job: AgentJob, label: string, message: string): SendOutcome {
  return { kind: 'postponed', label, message, job };
}

/**
 * Returns the outcome, or throws an error if an operator paused the activity before its POST. A paused activity must not complete,
 * because the workflow would send with the next activity, which is not paused.
 */
async function returnUnlessPaused(outcome: SendOutcome): Promise<SendOutcome> {
  const isOver = outcome.kind === 'posted' || outcome.kind === 'reset';
  if (!isOver) await requestSendPermission(null).catch(toRejectionReason);
  return outcome;
}

/**
 * Requests the send permission with a heartbeat. The Temporal server rejects the heartbeat if it no longer waits for this attempt.
 * For example, the process was suspended, and the attempt has timed out.
 *
 * @param details the heartbeat details for the next attempt. Details of null mean that no POST was started.
 * @returns a function that returns the milliseconds for which the permission is still valid
 * @throws the Temporal server's rejection (cancelled, paused, reset or timed out), or the error of a request without a response
 */
export async function requestSendPermission(details: unknown): Promise<() => number> {
  const { info, client } = Context.current();
  const elapsedMs = startTimer();
  await client.activity.heartbeat(info.taskToken, details, {
    serializationContext: toSerializationContext(info),
  });
  return () => SEND_PERMISSION_MS - elapsedMs();
}

/**
 * Converts the error of a heartbeat.
 *
 * @returns why nothing may be sent
 * @throws ApplicationFailure if the activity was paused or reset, because after a result the workflow would schedule a new activity
 */
async function toRejectionReason(error: unknown): Promise<string> {
  const reason = error instanceof Error ? error.message : String(error);
  if (error instanceof ActivityPausedError || error instanceof ActivityResetError) {
    // The Temporal server keeps the details of a heartbeat that it rejects. The details are cleared, because otherwise the next
    // attempt would send nothing.
    await requestSendPermission(null).catch(() => undefined);
    throw pollAgainError(RETRY_MS, `nothing was sent: the activity is ${reason}`);
  }
  return singleLine(`the Temporal server did not confirm that the send is still active (${reason})`, 300);
}
