import { Context } from '@temporalio/activity';
import type { AgentApi } from '../agent-api/client';
import type { FollowUpActivities, SendOutcome } from '../contract/activities';
import { truncate } from '../contract/bounds';

/**
 * The server's word that this activity is still wanted is good for so long. Connecting takes at most 10 s, and the
 * activity's start-to-close leaves 15 s beyond the HTTP time limit, so that a POST that begins within it ends before
 * the server gives it up.
 */
const PERMISSION_MS = 10_000;

/** What the activity's start-to-close leaves beyond the exchange, for the way to the server and back. */
const REPORT_MS = 15_000;

/**
 * The activity `sendMessage`: at most one POST, and never one that somebody else may have made before.
 *
 * It ignores cancellation and shutdown on purpose: a POST under way is finished, because its outcome is worth more
 * than the seconds it takes. It always returns an outcome; the workflow treats a failure as an unknown delivery.
 */
export function sendMessageBy(agentApi: AgentApi): FollowUpActivities['sendMessage'] {
  return async ({ firstExecutionRunId, ...message }) => {
    const { info } = Context.current();
    if (firstExecutionRunId !== null && info.workflowExecution?.runId !== firstExecutionRunId) {
      const words =
        'this run was reset to a point before its send, and the run before it may have sent the message';
      return { verdict: 'unknown', label: 'reset', message: words };
    }
    const permission = await askPermission();
    if (typeof permission === 'string') return notSent(permission);
    return agentApi.sendMessage(message, {
      timeoutMs: Math.max(1_000, info.startToCloseTimeoutMs - REPORT_MS),
      beforeFirstByte: () => permission.lapsed(),
    });
  };
}

interface Permission {
  /** Why nothing may be sent any more; undefined while sending is right. */
  lapsed(): string | undefined;
}

/**
 * Asks the server whether it still waits for this activity, right before the POST. A process that was frozen (SIGSTOP,
 * a suspended machine) may wake after the server has given the activity up; its clock at the activity's start proves
 * nothing, since the task may have lain in a socket's buffer.
 *
 * @returns the permission, or why nothing may be sent
 */
async function askPermission(): Promise<Permission | string> {
  const { info, client } = Context.current();
  const askedAt = Date.now();
  const askedTick = performance.now();
  try {
    await client.activity.heartbeat(info.taskToken);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return truncate(`the server did not confirm that the send is still wanted (${reason})`, 300);
  }
  return {
    // The wall clock shows a suspended machine, the monotonic one a wall clock that was set back.
    lapsed: () => {
      const age = Math.max(Date.now() - askedAt, performance.now() - askedTick);
      return age > PERMISSION_MS ? 'the worker stood still while it was connecting' : undefined;
    },
  };
}

function notSent(message: string): SendOutcome {
  return { verdict: 'not-sent', repeatable: true, answered: false, label: 'not wanted', message };
}
