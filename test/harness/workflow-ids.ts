/** Collects the entries of a list. */
export async function collectAll<T>(list: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const each of list) all.push(each);
  return all;
}

/** Collects the workflow IDs of a list. */
export async function collectWorkflowIds(
  list: AsyncIterable<{ readonly workflowId: string }>,
): Promise<string[]> {
  return (await collectAll(list)).map(({ workflowId }) => workflowId);
}
