import { CompleteAsyncError, Context, heartbeat, log } from '@temporalio/activity';
import { ActivityNotFoundError } from '@temporalio/client';
import { ApplicationFailure, ApplicationFailureCategory, CancelledFailure } from '@temporalio/common';
import type { AgentApi } from '../agent-api/client';
import type { FollowUpActivities, PollJobResult, Tally } from '../core/activities';
import { nextWait } from '../core/cadence';
import { NO_CHANGE } from '../core/names';
import { needsDecision, startTally, tallied, textOf } from '../core/tally';
import { formatDuration } from '../core/units';
import { isTally } from '../core/wire-checks';
import { failWithHeartbeatDetails } from '../temporal/sdk-internals';
import { InProcessPoll, type InProcessPolls } from './in-process-polls';
import { serverClock } from './server-clock';

/**
 * How long one activity polls, in milliseconds. After it the workflow decides anew, so that history gets the counts now
 * and then, and a deadline that was extended in the meantime comes to bear.
 */
export const POLL_LIMIT_MS = 30 * 60_000;

/**
 * The SDK sends a heartbeat at most every 24 s (0.8 of the heartbeat time-out of 30 s), the latest one of those made since;
 * one that is made every ten seconds is always there to send, through a wait of 30 s and a read of any length.
 */
const HEARTBEAT_EVERY_MS = 10_000;

/** A retry delay of 0 would mean the maximum interval (measured). */
const AT_ONCE_MS = 1;

/**
 * The activity `pollJob`: waits and reads by the cadence until an answer needs a decision of the workflow.
 *
 * While the waits are short it goes on in this process and heartbeats what it has counted ("frequent polling" in Temporal's
 * documentation). Else the attempt fails with the wait that is left as its retry delay, and the server keeps the time
 * ("infrequent polling"). In both cases the server has the counts, for whichever worker makes the next attempt.
 */
export function pollJobBy(agentApi: AgentApi, inProcess: InProcessPolls): FollowUpActivities['pollJob'] {
  return async (input) => {
    const { info, cancellationSignal } = Context.current();
    const serverTime = serverClock();
    const recorded = isTally(info.heartbeatDetails) ? info.heartbeatDetails : undefined;
    const poll = new InProcessPoll(
      info.workflowExecution?.runId ?? '',
      recorded ?? { ...startTally(input.trouble), nextReadAt: serverTime() + input.firstWaitMs },
    );
    const beat = setInterval(() => {
      heartbeat(poll.tally);
    }, HEARTBEAT_EVERY_MS);
    const onCancel = () => {
      poll.stop();
    };
    cancellationSignal.addEventListener('abort', onCancel, { once: true });
    try {
      // Where another attempt has recorded something, the server has kept the time.
      let waitMs = recorded === undefined ? input.firstWaitMs : 0;
      for (;;) {
        if (waitMs > 0) {
          if (serverTime() + waitMs >= input.endsAt)
            return { answer: null, askedAt: serverTime(), before: poll.tally };
          if (!(await inProcess.mayWait(poll, waitMs))) return await retryAfter(waitMs, poll.tally);
          if (poll.tally.polls > 0) heartbeat(poll.tally);
          const leftMs = await poll.wait(waitMs);
          if (poll.stopped) return ended(poll);
          if (!inProcess.mayRead()) return await retryAfter(leftMs, poll.tally);
        }
        const askedAt = serverTime();
        const answer = await agentApi.getJob(input);
        if (poll.stopped) return ended(poll);
        if (needsDecision(answer, input.known)) return { answer, askedAt, before: poll.tally };
        const now = serverTime();
        const words = textOf(answer);
        if (answer.kind === 'trouble' && words !== poll.tally.lastAnswer) log.warn(`read failed: ${words}`);
        const counted = tallied(poll.tally, answer, now);
        waitMs = Math.max(
          AT_ONCE_MS,
          nextWait(input.polling, now - input.since, counted.trouble, Math.random),
        );
        poll.tally = { ...counted, nextReadAt: now + waitMs };
      }
    } finally {
      clearInterval(beat);
      cancellationSignal.removeEventListener('abort', onCancel);
      inProcess.leave(poll);
    }
  };
}

/** The end of a poll that nobody waits for: the workflow has its count, or the server has cancelled it. */
function ended({ tally }: InProcessPoll): PollJobResult {
  if (Context.current().cancellationSignal.aborted) throw new CancelledFailure('the poll was cancelled');
  return { answer: null, askedAt: 0, before: tally };
}

/** Hands the rest of a wait over to the server, with what was counted. */
async function retryAfter(waitMs: number, tally: Tally): Promise<never> {
  const message =
    tally.polls === 0
      ? `the first poll of this activity comes in ${formatDuration(waitMs)}`
      : `poll ${tally.polls} of this activity: ${tally.lastAnswer ?? ''}, next in ${formatDuration(waitMs)}`;
  return failWithDetails(
    ApplicationFailure.create({
      type: NO_CHANGE,
      message,
      nonRetryable: false,
      category: ApplicationFailureCategory.BENIGN,
      nextRetryDelay: Math.max(AT_ONCE_MS, waitMs),
      details: [tally],
    }),
  );
}

/**
 * Fails the attempt with `failure`, whose details the next attempt gets. Where the server refuses, the heartbeat comes before.
 *
 * @throws CompleteAsyncError, or `failure` where the SDK is to report it
 */
async function failWithDetails(failure: ApplicationFailure): Promise<never> {
  const { info, client } = Context.current();
  try {
    await failWithHeartbeatDetails(client, info, failure);
  } catch (error) {
    // The server no longer waits for this attempt: nothing is lost by what is reported now.
    if (!(error instanceof ActivityNotFoundError))
      for (const details of failure.details ?? []) heartbeat(details);
    throw failure;
  }
  throw new CompleteAsyncError();
}
