import { Context } from '@temporalio/activity';
import type { AgentApi } from '../agent-api/client';
import { singleLine } from '../core/text';
import type { FollowUpActivities, PostOutcome, SendCheckpoint } from '../core/wire';
import { SEND_PERMISSION_MS } from '../core/cadence';
import { decideSend } from '../core/evidence';
import { contextOf } from '../temporal/sdk-internals';
import { ownRun, serverClock } from './attempt';

/** What the activity's start-to-close leaves beyond the two exchanges, for the way to the server and back. */
const REPORT_MS = 15_000;

const RESET =
  'this run was reset to a point before its send, and the run before it may have sent the message';
const EARLIER_ATTEMPT = 'an earlier attempt of the send may have sent the message, and did not report';

/**
 * The activity `sendMessage`: the one place where a message can leave. It looks at the job, asks the server for
 * permission, and makes at most one POST; all in one task, because the queue before it may be hours long.
 *
 * It never makes a POST that somebody else may have made before: another attempt of it, whose heartbeat details it
 * finds, or the run before a workflow reset. It ignores cancellation and shutdown once the POST has begun, because the
 * outcome is worth more than the seconds it takes. It always returns; in doubt, the delivery is unknown.
 */
export function sendMessageBy(agentApi: AgentApi): FollowUpActivities['sendMessage'] {
  return async (input) => {
    const { info } = Context.current();
    const serverTime = serverClock();
    const exchangeMs = Math.max(1_000, (info.startToCloseTimeoutMs - REPORT_MS) / 2);
    const earlier = info.heartbeatDetails as SendCheckpoint | undefined;
    if (earlier) return { kind: 'posted', ...earlier, outcome: noReport(EARLIER_ATTEMPT) };

    const look = await agentApi.getJob(input, { timeoutMs: exchangeMs });
    if (ownRun().runId !== input.permittedRunId) {
      const baseline = look.kind === 'job' ? look.job : null;
      return { kind: 'reset', baseline, label: 'reset', message: RESET };
    }
    if (look.kind === 'trouble') return { kind: 'unread', trouble: look };
    const { job } = look;
    if (decideSend(job, input.whenActive, input.earlierBaseline) !== 'send')
      return { kind: 'held-back', job };

    const checkpoint = { baseline: job, sentAt: Date.now() };
    const permission = await askPermission(checkpoint);
    if (typeof permission === 'string') return { kind: 'not-permitted', message: permission };
    // The server starts no send after the deadline; this is for the time since.
    if (serverTime() >= input.deadlineAt)
      return { kind: 'not-permitted', message: 'the deadline passed before the message was sent' };
    const outcome = await agentApi
      .sendMessage(input, {
        timeoutMs: exchangeMs,
        beforeFirstByte: () => {
          checkpoint.sentAt = Date.now();
          return permission.lapsed();
        },
      })
      .catch((error: unknown) => noReport(`the send broke off (${String(error)})`));
    return { kind: 'posted', ...checkpoint, outcome };
  };
}

/**
 * Asks the server whether it still waits for this activity, right before the POST. A process that was frozen (SIGSTOP,
 * a suspended machine) may wake after the server has given the activity up; its clock at the activity's start proves
 * nothing, since the task may have lain in a socket's buffer. The question is a heartbeat whose details the server keeps:
 * without them, no POST was begun.
 *
 * @returns the permission, or why nothing may be sent: cancelled, paused, reset, given up, or no answer
 */
async function askPermission(checkpoint: SendCheckpoint) {
  const { info, client } = Context.current();
  const askedAt = Date.now();
  const askedTick = performance.now();
  try {
    await client.activity.heartbeat(info.taskToken, checkpoint, { serializationContext: contextOf(info) });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return singleLine(`the server did not confirm that the send is still wanted (${reason})`, 300);
  }
  return {
    // The wall clock shows a suspended machine, the monotonic one a wall clock that was set back.
    lapsed: () => {
      const age = Math.max(Date.now() - askedAt, performance.now() - askedTick);
      return age > SEND_PERMISSION_MS ? 'the worker stood still while it was connecting' : undefined;
    },
  };
}

function noReport(message: string): PostOutcome {
  return { verdict: 'unknown', label: 'no report', message: singleLine(message, 300) };
}
