import { CompleteAsyncError, Context, heartbeat, log } from '@temporalio/activity';
import { ActivityNotFoundError } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import type { AgentApi } from '../agent-api/client';
import { nextWait } from '../core/cadence';
import { countsAfter, needsDecision, startTally, textOf } from '../core/tally';
import { formatDuration } from '../core/units';
import { type FollowUpActivities, isTally, type PollJobResult, type Tally } from '../core/activities';
import { failWithHeartbeatDetails } from '../temporal/sdk-internals';
import { askAgainIn, ownRun, serverClock } from './attempt';
import { InProcessPoll, type InProcessPolls } from './in-process-polls';

/** How long one activity polls: then history gets the counts. */
export const POLL_LIMIT_MS = 30 * 60_000;

/** The SDK sends the latest one every 24 s at most (0.8 of the time-out): there is always one to send. */
const HEARTBEAT_EVERY_MS = 10_000;

/**
 * While the waits are short it goes on in this process and heartbeats its counts. Else the attempt fails, with the rest of the
 * wait as its retry delay; whichever worker makes the next attempt gets the counts.
 */
export function pollJobBy(agentApi: AgentApi, inProcess: InProcessPolls): FollowUpActivities['pollJob'] {
  return async (input) => {
    const { info, cancellationSignal } = Context.current();
    const serverTime = serverClock();
    const recorded = isTally(info.heartbeatDetails) ? info.heartbeatDetails : undefined;
    const begun = { ...startTally(input.trouble), nextReadAt: serverTime() + input.firstWaitMs };
    const poll = new InProcessPoll(ownRun().runId, recorded ?? begun);
    const beat = setInterval(() => {
      heartbeat(poll.tally);
    }, HEARTBEAT_EVERY_MS);
    cancellationSignal.addEventListener('abort', () => {
      poll.stop();
    });
    try {
      // Where another attempt has recorded something, the server has kept the time.
      let waitMs = recorded === undefined ? input.firstWaitMs : 0;
      for (;;) {
        if (waitMs > 0) {
          if (serverTime() + waitMs >= input.endsAt)
            return { answer: null, askedAt: serverTime(), before: poll.tally };
          if (!(await inProcess.mayWait(poll, waitMs))) return await retryAfter(waitMs, poll.tally);
          if (poll.tally.polls > 0) heartbeat(poll.tally);
          const restMs = await poll.wait(waitMs);
          if (poll.stopped) return ended(poll);
          if (!inProcess.mayRead()) return await retryAfter(restMs, poll.tally);
        }
        const askedAt = serverTime();
        const answer = await agentApi.getJob(input);
        if (poll.stopped) return ended(poll);
        if (needsDecision(answer, input.known)) return { answer, askedAt, before: poll.tally };
        const now = serverTime();
        const words = textOf(answer);
        if (answer.kind === 'trouble' && words !== poll.tally.lastAnswer) log.warn(`read failed: ${words}`);
        const counted = countsAfter(poll.tally, answer, now);
        waitMs = nextWait(input.polling, now - input.since, counted.trouble);
        poll.tally = { ...counted, lastAnswer: words, nextReadAt: now + waitMs };
      }
    } finally {
      clearInterval(beat);
      inProcess.leave(poll);
    }
  };
}

/** The end of a poll that nobody waits for: the workflow has its count, or the server has cancelled it. */
function ended({ tally }: InProcessPoll): PollJobResult {
  if (Context.current().cancellationSignal.aborted) throw new CancelledFailure('the poll was cancelled');
  return { answer: null, askedAt: 0, before: tally };
}

/** Hands the rest of a wait over to the server. @throws CompleteAsyncError, or the failure where the SDK is to report it */
async function retryAfter(waitMs: number, tally: Tally): Promise<never> {
  const { polls, lastAnswer } = tally;
  const words = `poll ${polls} of this activity: ${lastAnswer ?? 'no answer yet'}, next in ${formatDuration(waitMs)}`;
  // A retry delay of 0 would mean the maximum interval (measured).
  const failure = askAgainIn(Math.max(1, waitMs), words, tally);
  const { info, client } = Context.current();
  try {
    await failWithHeartbeatDetails(client, info, failure);
  } catch (error) {
    if (!(error instanceof ActivityNotFoundError)) heartbeat(tally);
    throw failure;
  }
  throw new CompleteAsyncError();
}
