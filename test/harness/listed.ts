import type { Client } from '@temporalio/client';

/** The workflow ids that the server's list finds. */
export async function listed({ workflow }: Client, query: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const { workflowId } of workflow.list({ query })) ids.push(workflowId);
  return ids;
}
