import { Context } from '@temporalio/activity';
import { ActivityPausedError, ActivityResetError } from '@temporalio/client';
import type { AgentApi } from '../agent-api/client';
import {
  type FollowUpActivities,
  createUnreportedOutcome,
  SEND_PERMISSION_MS,
  type SendCheckpoint,
  type SendOutcome,
  type SendInput,
} from '../contract/activities';
import type { AgentJob } from '../contract/job';
import { singleLine } from '../contract/text';
import { decideSend } from '../follow-up/evidence';
import { toSerializationContext } from '../temporal/sdk-internals';
import { currentRun, pollAgainError, serverClock } from './attempt';
import { acquireJobLock } from './job-lock';

/** What the start-to-close timeout leaves for the requests to the Temporal server, besides the two HTTP requests. */
const REPORT_MS = 15_000;

/** The interval of the send's retry policy, too. */
const RETRY_MS = 5_000;

const RESET_MESSAGE =
  'this run was reset to a point before its send, and the run before it may have sent the message';
const EARLIER_ATTEMPT_MESSAGE =
  'an earlier attempt of the send may have sent the message, and did not report';

/**
 * The only function that sends a message. It makes no POST that may have been made before: by another attempt, whose heartbeat
 * details it finds, or by the run before a reset. A POST in progress ignores cancellation and shutdown, because its outcome is
 * worth more than the seconds that it takes.
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
      return { outcome: outcome, lockRunId: null };
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

/** @param startedTick when the attempt started, by `performance.now()` */
async function readAndPost(agentApi: AgentApi, input: SendInput, startedTick: number): Promise<SendOutcome> {
  const attemptMs = Context.current().info.startToCloseTimeoutMs;
  const requestMs = Math.max(1_000, (attemptMs - REPORT_MS) / 2);
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
  if (serverTime() >= input.deadlineAt)
    return createPostponedOutcome(job, 'deadline', 'the deadline passed before the send');
  // The attempt's timeout must not end a POST that still gets its response.
  const leftMs = attemptMs - (performance.now() - startedTick);
  if (leftMs < requestMs + SEND_PERMISSION_MS)
    return createPostponedOutcome(
      job,
      'late',
      'the Temporal server or the baseline read took too long; the message is sent with the next try',
    );

  const checkpoint = { baseline: job, sentAt: Date.now() };
  const permission = await requestSendPermission(checkpoint).catch(toRejectionReason);
  if (typeof permission === 'string') return createPostponedOutcome(job, 'not_permitted', permission);
  const outcome = await agentApi
    .sendMessage(input, {
      timeoutMs: requestMs,
      beforeFirstByte: () => {
        checkpoint.sentAt = Date.now();
        return permission() > 0 ? undefined : 'the worker stood still while it was connecting';
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

/** An activity that an operator paused must not end before its POST: the workflow would send with the next one, which is not paused. */
async function returnUnlessPaused(outcome: SendOutcome): Promise<SendOutcome> {
  const isOver = outcome.kind === 'posted' || outcome.kind === 'reset';
  if (!isOver) await requestSendPermission(null).catch(toRejectionReason);
  return outcome;
}

/**
 * Asks the Temporal server whether it still waits for this attempt: a process that was frozen may continue after the attempt was
 * given up.
 *
 * @param details what the next attempt must know: without them, no POST was started
 * @returns the milliseconds for which the permission still holds
 * @throws the rejection of the Temporal server (cancelled, paused, reset, given up), or the error of a request without a response
 */
export async function requestSendPermission(details: unknown): Promise<() => number> {
  const { info, client } = Context.current();
  const requestedAt = Date.now();
  const requestedTick = performance.now();
  await client.activity.heartbeat(info.taskToken, details, {
    serializationContext: toSerializationContext(info),
  });
  // The wall clock shows a suspended machine; the monotonic clock shows a wall clock that was set back.
  return () => SEND_PERMISSION_MS - Math.max(Date.now() - requestedAt, performance.now() - requestedTick);
}

/**
 * @returns why nothing may be sent
 * @throws ApplicationFailure if the activity was paused or reset: a result would let an unpaused activity follow
 */
async function toRejectionReason(error: unknown): Promise<string> {
  const reason = error instanceof Error ? error.message : String(error);
  if (error instanceof ActivityPausedError || error instanceof ActivityResetError) {
    // The Temporal server keeps the details of a heartbeat that it rejects: the next attempt would send nothing.
    await requestSendPermission(null).catch(() => undefined);
    throw pollAgainError(RETRY_MS, `nothing was sent: the activity is ${reason}`);
  }
  return singleLine(`the Temporal server did not confirm that the send is still wanted (${reason})`, 300);
}
