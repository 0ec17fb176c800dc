import type { Client } from '@temporalio/client';
import type { BatchInput, BatchPage, PageInput } from '../../core/batch-workflows';
import { isRecord } from '../../core/json';
import { readFirstEvent } from '../../temporal/existing-run';
import type { BatchDescription } from './describe-batch';

/** What a batch was started with, by whichever client; null where the server has forgotten it. */
export async function inputOfBatch(
  client: Client,
  { workflowId, firstRunId }: BatchDescription,
): Promise<BatchInput | null> {
  const event = await readFirstEvent(client, workflowId, firstRunId);
  return isRecord(event?.input) ? event.input : null;
}

/** A page with its items, by what its workflow was started with; null where it does not exist. */
export async function pageWithItems(client: Client, workflowId: string): Promise<BatchPage | null> {
  const event = await readFirstEvent(client, workflowId, '');
  return isRecord(event?.input) ? (event.input as unknown as PageInput).page : null;
}
