import { Context } from '@temporalio/activity';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { followUpWorkflowId } from '../contract/workflow-id';
import type { FollowUpActivities } from '../contract/activities';
import { requestIdOf } from '../contract/batch-id';
import {
  type Allotment,
  BATCH_PAGE_WORKFLOW,
  type EarlierPage,
  type PageInput,
  type PageResult,
  SIGNAL_ALLOT,
} from '../contract/batch-workflows';
import { isRecord } from '../contract/field-reader';
import { readFirstEvent } from '../client/first-input';
import { askAgainIn } from './ask-again';

const LEAVE: Allotment = { places: 0, tolerated: null, mode: 'leave' };

/** A page closes with the next workflow task. */
const CLOSES_WITHIN_MS = 1_000;

/**
 * The activity `earlierPage`: what an earlier run of a batch has done with the items of a page. A page that has closed by
 * itself says so in its result; of one that was terminated, the history proves which items it has started.
 */
export const earlierPage: FollowUpActivities['earlierPage'] = (workflowId) =>
  pageAsItWas(Context.current().client, workflowId);

async function pageAsItWas(client: Client, workflowId: string): Promise<EarlierPage | null> {
  const handle = client.workflow.getHandle(workflowId);
  try {
    const { status, type } = await handle.describe();
    if (type !== BATCH_PAGE_WORKFLOW) return null;
    if (status.name === 'RUNNING') {
      // Its batch was terminated, and it has not heard of it yet.
      await handle.signal(SIGNAL_ALLOT, LEAVE).catch(ignoreClosed);
      throw askAgainIn(CLOSES_WITHIN_MS, 'the page of the earlier run has been told to close');
    }
    if (status.name === 'COMPLETED') {
      const { ends, left } = (await handle.result()) as PageResult;
      return { ends, left };
    }
    return await pageByHistory(client, workflowId);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

function ignoreClosed(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

/** A page starts an item by a child workflow, and by nothing else. */
async function pageByHistory(client: Client, workflowId: string): Promise<EarlierPage | null> {
  const event = await readFirstEvent(client, workflowId, '');
  if (!isRecord(event?.input)) return null;
  const { batchId, page, earlier, inDoubt } = event.input as unknown as PageInput;
  const before = earlier ? await pageAsItWas(client, earlier) : { ends: [], left: [] };
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
  const wasReset = (events ?? []).some((each) => each.workflowTaskFailedEventAttributes?.newRunId);
  const started = new Set(before?.left);
  for (const each of events ?? []) {
    const id = each.startChildWorkflowExecutionInitiatedEventAttributes?.workflowId;
    if (id) started.add(id);
  }
  // What a run did that was replaced by a reset is not in this history.
  if (wasReset || inDoubt === true || before === null) {
    for (const item of page.items) {
      const { projectId, jobId } = item.request;
      started.add(followUpWorkflowId(projectId, jobId, requestIdOf(batchId, item)));
    }
  }
  return { ends: (before?.ends ?? []).filter((end) => !started.has(end.workflowId)), left: [...started] };
}
