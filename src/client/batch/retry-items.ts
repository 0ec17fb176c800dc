import type { Client } from '@temporalio/client';
import type { ItemEnd } from '../../contract/batch';
import { requestIdOf } from '../../contract/batch-id';
import type { PageInput } from '../../contract/batch-workflows';
import type { Verdict } from '../../contract/delivery';
import type { FollowUpRequest } from '../../contract/request';
import { followUpWorkflowId, pageWorkflowId } from '../../contract/workflow-id';
import { describeFollowUp } from '../description';
import { eachOf } from '../each-of';
import { FollowUpCancelledError, FollowUpEnd, FollowUpError } from '../ends';
import { FollowUpNotFoundError } from '../errors';
import { readFirstEvent } from '../first-input';
import { awaitResult } from '../result';
import { retryBatchId } from './identity';
import { type CheckedBatch, ItemCollector } from './item-collector';

/** Follow-ups at once that are asked for an end of which the batch has not heard. */
const AT_ONCE = 20;

/**
 * The items of a batch whose message was not sent or was rejected, as a batch of their own with names of their own: a
 * follow-up that has ended keeps its name for ever.
 *
 * @param ends how the items have ended
 * @param includeUnknown those too of which nobody can tell whether the message arrived: they may be sent twice
 * @returns the batch; null when there is nothing to try again
 */
export async function itemsToRetry(
  client: Client,
  batch: { readonly batchId: string; readonly run: string; readonly pages: number },
  ends: readonly ItemEnd[],
  includeUnknown: boolean,
): Promise<CheckedBatch | null> {
  const byId = new Map(ends.map((end) => [end.workflowId, end]));
  const collector = new ItemCollector({ unit: 'item', batchId: retryBatchId(batch.batchId) });
  let place = 0;
  for (let page = 1; page <= batch.pages; page += 1) {
    const input = await pageInput(client, pageWorkflowId(batch.batchId, batch.run, page));
    const items = input?.page.items ?? [];
    const retried = await eachOf(items, AT_ONCE, (item) => {
      const { projectId, jobId } = item.request;
      const workflowId = followUpWorkflowId(projectId, jobId, requestIdOf(batch.batchId, item));
      return mayBeRetried(client, workflowId, byId.get(workflowId), includeUnknown);
    });
    for (const { request } of items.filter((_, index) => retried[index])) {
      place += 1;
      collector.add(place, withoutName(request));
    }
  }
  return place === 0 ? null : collector.finish();
}

async function mayBeRetried(
  client: Client,
  workflowId: string,
  end: ItemEnd | undefined,
  includeUnknown: boolean,
): Promise<boolean> {
  const delivery = end === undefined ? await deliveryOf(client, workflowId) : end.delivery;
  if (delivery === 'running') return false;
  if (delivery === 'not-sent' || delivery === 'rejected') return true;
  return includeUnknown && (delivery === 'unknown' || delivery === null);
}

/** What became of an item of which the batch has not heard the end: it was never started, or was left running. */
async function deliveryOf(client: Client, workflowId: string): Promise<Verdict | 'running' | null> {
  try {
    const { state } = await describeFollowUp(client, workflowId);
    if (state === 'running') return 'running';
    return (await awaitResult(client, workflowId)).followUp.delivery.verdict;
  } catch (error) {
    if (error instanceof FollowUpNotFoundError) return 'not-sent';
    if (error instanceof FollowUpError) return error.details.followUp.delivery.verdict;
    if (error instanceof FollowUpCancelledError) return error.receipt?.delivery.verdict ?? null;
    if (error instanceof FollowUpEnd) return null;
    throw error;
  }
}

function withoutName(request: FollowUpRequest): FollowUpRequest {
  const { requestId, ...unnamed } = request;
  return requestId === undefined ? request : unnamed;
}

async function pageInput(client: Client, workflowId: string): Promise<PageInput | undefined> {
  const event = await readFirstEvent(client, workflowId, '');
  return event?.input as PageInput | undefined;
}
