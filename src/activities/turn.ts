import { Context } from '@temporalio/activity';
import { type Client, WorkflowClient, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { turnWorkflowId } from '../core/ids';
import { MEMO_TURN_HOLDER, TURN_WORKFLOW } from '../core/names';
import { type FollowUpActivities, isTurnHolder, type TurnHolder } from '../core/activities';
import { describeWorkflow, firstRunOf, ignoreClosed, stateOf } from '../temporal/existing-run';
import { withoutDecoding } from '../temporal/lists';
import { askAgainIn } from './attempt';

/** The same for everybody: with waits that grow, whoever comes late would be before those who have waited for long. */
const TAKEN_WAIT_MS = 10_000;

/** A turn whose follow-up has ended makes nobody wait. */
const LONGEST_END_WAIT_MS = 5 * 60_000;

const MAX_TRIES = 5;

/**
 * Starts the workflow that is the turn. An open one holds until its follow-up has ended, and is then ended by its run id, so that
 * nobody ends a later one.
 */
export const takeTurn: FollowUpActivities['takeTurn'] = async ({ projectId, jobId }, own) => {
  const { client, info } = Context.current();
  const workflowId = turnWorkflowId(projectId, jobId);
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    try {
      await client.workflow.start(TURN_WORKFLOW, {
        workflowId,
        taskQueue: info.taskQueue,
        args: [own],
        memo: { [MEMO_TURN_HOLDER]: own },
        workflowIdConflictPolicy: 'FAIL',
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      });
      return;
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
    const turn = await describeWorkflow(client, workflowId);
    if (turn === null || stateOf(turn.status.name) !== 'running') continue;
    const holder = turn.memo?.[MEMO_TURN_HOLDER];
    if (!isTurnHolder(holder))
      throw askAgainIn(TAKEN_WAIT_MS, `waiting for the workflow ${workflowId} to end`);
    // An earlier attempt, or the run before a reset, has taken it.
    if (holder.firstRunId === own.firstRunId) return;
    if (await runs(client, holder))
      throw askAgainIn(TAKEN_WAIT_MS, `waiting for the turn of ${holder.workflowId}`);
    await client.workflow
      .getHandle(workflowId, turn.runId)
      .terminate('its follow-up has ended')
      .catch(ignoreClosed);
  }
  throw askAgainIn(TAKEN_WAIT_MS, 'waiting for the turn, which others take');
};

export const awaitEnd: FollowUpActivities['awaitEnd'] = async (holder) => {
  const { client, info } = Context.current();
  // A foreign client can start a turn with anything.
  if (!isTurnHolder(holder) || !(await runs(client, holder))) return;
  const waitMs = Math.min(LONGEST_END_WAIT_MS, TAKEN_WAIT_MS * info.attempt);
  throw askAgainIn(waitMs, 'the follow-up still runs');
};

/** Whether a follow-up has an open run: its first one, or one that continues it or was made by a reset. */
async function runs(client: Client, { workflowId, firstRunId }: TurnHolder): Promise<boolean> {
  // Whatever its memo holds need not be readable here.
  const undecoded = new WorkflowClient(withoutDecoding(client));
  const found = await describeWorkflow({ workflow: undecoded }, workflowId);
  return found !== null && stateOf(found.status.name) === 'running' && firstRunOf(found) === firstRunId;
}
