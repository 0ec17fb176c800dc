import { Context } from '@temporalio/activity';
import { ActivityPausedError, ActivityResetError } from '@temporalio/client';
import type { AgentApi } from '../agent-api/client';
import { singleLine } from '../core/text';
import { type FollowUpActivities, noReport, type SendCheckpoint } from '../core/activities';
import { SEND_PERMISSION_MS } from '../core/cadence';
import { decideSend } from '../core/evidence';
import { contextOf } from '../temporal/sdk-internals';
import { askAgainIn, ownRun } from './attempt';

/** What start-to-close leaves beyond the two exchanges. */
const REPORT_MS = 15_000;

/** By the send's retry policy, too. */
const AGAIN_MS = 5_000;

const RESET =
  'this run was reset to a point before its send, and the run before it may have sent the message';
const EARLIER_ATTEMPT = 'an earlier attempt of the send may have sent the message, and did not report';

/**
 * The one place where a message can leave. It makes no POST that somebody else may have made before: another attempt, whose
 * heartbeat details it finds, or the run before a reset. A POST that has begun ignores cancellation and shutdown: its outcome is
 * worth more than the seconds it takes.
 */
export function sendMessageBy(agentApi: AgentApi): FollowUpActivities['sendMessage'] {
  return async (input) => {
    const { info } = Context.current();
    const exchangeMs = Math.max(1_000, (info.startToCloseTimeoutMs - REPORT_MS) / 2);
    const earlier = info.heartbeatDetails as SendCheckpoint | null | undefined;
    if (earlier) return { kind: 'posted', ...earlier, outcome: noReport(EARLIER_ATTEMPT) };

    const { insist = false } = input;
    const look = await agentApi.getJob(input, { timeoutMs: exchangeMs, before: 'send', insist });
    if (ownRun().runId !== input.permittedRunId) {
      const baseline = look.kind === 'job' ? look.job : null;
      return { kind: 'reset', baseline, label: 'reset', message: RESET };
    }
    const mayPost =
      look.kind === 'job' && decideSend(look.job, input.whenActive, input.earlierBaseline) === 'send';
    const checkpoint = mayPost ? { baseline: look.job, sentAt: Date.now() } : null;
    const permission = await askPermission(checkpoint).catch(reasonOfRefusal);
    if (look.kind === 'trouble') return { kind: 'unread', trouble: look };
    if (checkpoint === null) return { kind: 'held-back', job: look.job };
    if (typeof permission === 'string') return { kind: 'not-permitted', message: permission };
    const outcome = await agentApi
      .sendMessage(input, {
        timeoutMs: exchangeMs,
        beforeFirstByte: () => {
          checkpoint.sentAt = Date.now();
          return permission() > 0 ? undefined : 'the worker stood still while it was connecting';
        },
      })
      .catch((error: unknown) => noReport(`the send broke off (${String(error)})`));
    return { kind: 'posted', ...checkpoint, outcome };
  };
}

/**
 * Asks the server whether it still waits for this attempt: a process that was frozen may wake after it has been given up.
 *
 * @param details what the next attempt must know: without them, nothing was begun
 * @returns the milliseconds for which the permission still holds
 * @throws what the server says (cancelled, paused, reset, given up), or the error of a call without an answer
 */
export async function askPermission(details: unknown): Promise<() => number> {
  const { info, client } = Context.current();
  const askedAt = Date.now();
  const askedTick = performance.now();
  await client.activity.heartbeat(info.taskToken, details, { serializationContext: contextOf(info) });
  // The wall clock shows a suspended machine, the monotonic one a wall clock that was set back.
  return () => SEND_PERMISSION_MS - Math.max(Date.now() - askedAt, performance.now() - askedTick);
}

/**
 * @returns why nothing may be sent
 * @throws ApplicationFailure where the activity was paused or reset: its end would let another one follow that is not paused
 */
async function reasonOfRefusal(error: unknown): Promise<string> {
  const reason = error instanceof Error ? error.message : String(error);
  if (error instanceof ActivityPausedError || error instanceof ActivityResetError) {
    // The server keeps the details of a heartbeat that it refuses: the next attempt would send nothing.
    await askPermission(null).catch(() => undefined);
    throw askAgainIn(AGAIN_MS, `nothing was sent: the activity is ${reason}`);
  }
  return singleLine(`the server did not confirm that the send is still wanted (${reason})`, 300);
}
