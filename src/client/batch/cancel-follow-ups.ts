import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { type Allotment, BATCH_PAGE_WORKFLOW, SIGNAL_ALLOT } from '../../core/batch-workflows';
import { FOLLOW_UP_WORKFLOW } from '../../core/names';
import { keywordKey } from '../../temporal/search-attributes';
import { visibilityQuery } from '../list';
import { attribute } from '../start';

/** The visibility store is a moment behind: nothing more is open if it lists nothing new twice, so far apart. */
const LOOKS = 2;
const BETWEEN_LOOKS_MS = 1_000;

/** What a page of a batch that has ended is told, if it has not noticed yet: it cancels what it has open. */
const CANCEL: Allotment = { places: 0, tolerated: null, mode: 'cancel' };

/** The open follow-ups that a batch has started, in any of its runs, by their workflow ids. */
export function openFollowUps(client: Client, batchId: string): Promise<string[]> {
  return openOf(client, FOLLOW_UP_WORKFLOW, batchId);
}

/**
 * Cancels every open follow-up that a batch has started in any of its runs. The batch must start nothing more.
 *
 * @param open those that were open before; they count too
 * @returns how many were open
 */
export async function cancelFollowUps(
  client: Client,
  batchId: string,
  open: readonly string[],
): Promise<number> {
  const all = new Set(open);
  const told = new Set<string>();
  for (let looks = 0; looks < LOOKS; looks += 1) {
    if (looks > 0) await sleep(BETWEEN_LOOKS_MS);
    for (const page of await openOf(client, BATCH_PAGE_WORKFLOW, batchId)) {
      await client.workflow.getHandle(page).signal(SIGNAL_ALLOT, CANCEL).catch(ignoreEnded);
    }
    for (const followUp of await openOf(client, FOLLOW_UP_WORKFLOW, batchId)) {
      all.add(followUp);
      if (told.has(followUp)) continue;
      told.add(followUp);
      looks = 0;
      await client.workflow.getHandle(followUp).cancel().catch(ignoreEnded);
    }
  }
  return all.size;
}

async function openOf(client: Client, type: string, batchId: string): Promise<string[]> {
  const name = attribute(batchId);
  const query = `${visibilityQuery([['FollowUpBatch', name]], type)} AND ExecutionStatus = 'Running'`;
  const ids: string[] = [];
  // The query may find too much.
  for await (const { workflowId, typedSearchAttributes } of client.workflow.list({ query }))
    if (typedSearchAttributes.get(keywordKey('FollowUpBatch')) === name) ids.push(workflowId);
  return ids;
}

function ignoreEnded(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}
