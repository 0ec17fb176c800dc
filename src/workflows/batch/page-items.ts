import { mayTryAgain } from '../../batch/try-again';
import type { BatchItem, ItemEnd } from '../../contract/batch';
import { requestIdOf } from '../../contract/batch-id';
import type { EarlierPage, PageInput } from '../../contract/batch-workflows';
import { type NamedItem, workflowIdOf } from './run-item';

/** What a page has to do, and the ends that stay as they are. */
export interface ItemsOfPage {
  readonly kept: readonly ItemEnd[];
  /** The items that are left, by job, in the order in which they came. */
  readonly lanes: NamedItem[][];
}

/** @param before what an earlier run of the batch has done; null where nobody can tell */
export function itemsOfPage(
  { batchId, page, again = null, inDoubt = false }: PageInput,
  before: EarlierPage | null,
): ItemsOfPage {
  const ends = new Map(before?.ends.map((end) => [end.workflowId, end]));
  const left = new Set(before?.left);
  const isUnknown = before === null || inDoubt;
  const kept: ItemEnd[] = [];
  const lanes = new Map<string, NamedItem[]>();
  for (const item of page.items) {
    const requestId = requestIdOf(batchId, item);
    const workflowId = workflowIdOf(item, requestId);
    const end = ends.get(workflowId) ?? null;
    if (end !== null && (again === null || !mayTryAgain(end, again))) {
      kept.push(end);
      continue;
    }
    const isNew = end === null && !isUnknown && !left.has(workflowId);
    const lane = lanes.get(laneOf(item)) ?? [];
    lane.push({ workflowId, requestId, item, isNew, before: end });
    lanes.set(laneOf(item), lane);
  }
  return { kept, lanes: [...lanes.values()] };
}

function laneOf({ request: { projectId, jobId } }: BatchItem): string {
  return JSON.stringify([projectId, jobId]);
}
