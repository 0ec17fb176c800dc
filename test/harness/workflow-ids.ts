/** Collects the workflow IDs of a list. */
export async function collectWorkflowIds(
  list: AsyncIterable<{ readonly workflowId: string }>,
): Promise<string[]> {
  const ids: string[] = [];
  for await (const { workflowId } of list) ids.push(workflowId);
  return ids;
}
