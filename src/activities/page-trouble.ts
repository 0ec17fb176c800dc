import { Context } from '@temporalio/activity';
import { type Client, type WorkflowExecutionDescription, WorkflowNotFoundError } from '@temporalio/client';
import type { FollowUpActivities } from '../contract/activities';
import { runOf } from '../contract/workflow-id';
import { askAgainIn } from './ask-again';

/** A page has to hear within minutes that its batch is gone; a look costs some milliseconds for each open follow-up. */
export const LOOK_EVERY_MS = 3 * 60_000;

/** A follow-up that has ended this long ago, and whose page still waits for it, has not told it. */
const UNTOLD_MS = 60_000;

type Pending = NonNullable<WorkflowExecutionDescription['raw']['pendingChildren']>[number];

/**
 * The activity `pageTrouble`: what happened to a page's batch and to its follow-ups that no event tells the page of. It
 * asks the server, and costs neither the batch nor the page an event until there is something to tell.
 */
export function pageTroubleEvery(lookEveryMs: number): FollowUpActivities['pageTrouble'] {
  return async ({ batchWorkflowId, run, known }) => {
    const { info, client } = Context.current();
    // When it has just been asked, nothing can have happened.
    if (info.attempt > 1) {
      const batchIsGone = batchWorkflowId !== null && (await isGone(client, batchWorkflowId, run));
      const { workflowId, runId } = info.workflowExecution ?? { workflowId: '', runId: '' };
      const { raw } = await client.workflow.getHandle(workflowId, runId).describe();
      const lost: string[] = [];
      for (const child of raw.pendingChildren ?? []) {
        const id = child.workflowId ?? '';
        if (!known.includes(id) && (await isLost(client, id, child))) lost.push(id);
      }
      if (batchIsGone || lost.length > 0) return { batchIsGone, lost };
    }
    throw askAgainIn(lookEveryMs, 'the batch and the open follow-ups are there');
  };
}

async function isGone(client: Client, batchWorkflowId: string, run: string): Promise<boolean> {
  const batch = await describe(client, batchWorkflowId);
  if (batch === null) return true;
  const firstRunId = batch.raw.workflowExecutionInfo?.firstRunId ?? batch.runId;
  return runOf(firstRunId) !== run || batch.closeTime !== undefined;
}

async function isLost(client: Client, workflowId: string, { runId }: Pending): Promise<boolean> {
  // It is just being started.
  if (!runId) return false;
  const followUp = await describe(client, workflowId);
  if (followUp === null) return true;
  // Another one of the same name: the page's own is gone.
  if ((followUp.raw.workflowExecutionInfo?.firstRunId ?? followUp.runId) !== runId) return true;
  return followUp.closeTime !== undefined && Date.now() - followUp.closeTime.getTime() > UNTOLD_MS;
}

async function describe(client: Client, workflowId: string): Promise<WorkflowExecutionDescription | null> {
  try {
    return await client.workflow.getHandle(workflowId).describe();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}
