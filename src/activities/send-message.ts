import { Context } from '@temporalio/activity';
import type { AgentApi } from '../agent-api/client';
import { singleLine } from '../core/text';
import type { FollowUpActivities, PostOutcome, SendCheckpoint } from '../core/activities';
import { SEND_PERMISSION_MS } from '../core/cadence';
import { decideSend } from '../core/evidence';
import { contextOf } from '../temporal/sdk-internals';
import { ownRun } from './attempt';

/** What start-to-close leaves beyond the two exchanges. */
const REPORT_MS = 15_000;

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
    const earlier = info.heartbeatDetails as SendCheckpoint | undefined;
    if (earlier) return { kind: 'posted', ...earlier, outcome: noReport(EARLIER_ATTEMPT) };

    const { insist = false } = input;
    const look = await agentApi.getJob(input, { timeoutMs: exchangeMs, before: 'send', insist });
    if (ownRun().runId !== input.permittedRunId) {
      const baseline = look.kind === 'job' ? look.job : null;
      return { kind: 'reset', baseline, label: 'reset', message: RESET };
    }
    if (look.kind === 'trouble') return { kind: 'unread', trouble: look };
    const { job } = look;
    if (decideSend(job, input.whenActive, input.earlierBaseline) !== 'send')
      return { kind: 'held-back', job };

    const checkpoint = { baseline: job, sentAt: Date.now() };
    const permission = await askPermission(checkpoint).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      return singleLine(`the server did not confirm that the send is still wanted (${reason})`, 300);
    });
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

function noReport(message: string): PostOutcome {
  return { verdict: 'unknown', label: 'no report', message: singleLine(message, 300) };
}
