import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { hasPage, pagesIn } from '../../batch/page-ranges';
import type { BegunPages } from '../../contract/batch-workflows';
import { pageWorkflowId } from '../../contract/workflow-id';
import { eachOf } from '../each-of';
import { BatchForgottenError } from '../errors';

/** Pages that are looked for at once. */
const AT_ONCE = 16;

/** The latest run that had begun a page; null where none had. It knows what the runs before it knew of the page. */
export function lastRunOf(begun: readonly BegunPages[], page: number): string | null {
  return begun.findLast(({ pages }) => hasPage(pages, page))?.run ?? null;
}

/** Every page that has begun in some run, with the latest one that had begun it. */
export function begunPages(begun: readonly BegunPages[]): Map<number, string> {
  const runs = new Map<number, string>();
  for (const { run, pages } of begun) for (const page of pagesIn(pages)) runs.set(page, run);
  return runs;
}

/**
 * Makes sure that the pages are there that know what a batch has sent.
 *
 * @throws BatchForgottenError
 */
export async function refuseForgotten(
  client: Client,
  batchId: string,
  begun: readonly BegunPages[],
): Promise<void> {
  const gone: number[] = [];
  await eachOf(begunPages(begun), AT_ONCE, async ([page, run]) => {
    if (!(await isThere(client, pageWorkflowId(batchId, run, page)))) gone.push(page);
  });
  if (gone.length > 0)
    throw new BatchForgottenError(
      batchId,
      gone.sort((one, other) => one - other),
    );
}

export async function isThere(client: Client, workflowId: string): Promise<boolean> {
  try {
    await client.workflow.getHandle(workflowId).describe();
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}
