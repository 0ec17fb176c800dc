import { ActivityFailure, isCancellation } from '@temporalio/workflow';
import { type EndOfItem, mayTryAgain } from '../../core/batch';
import type { EarlierPage, PageInput } from '../../core/batch-workflows';
import { areEndsOfItems, isEarlierPage } from '../../core/wire-checks';
import { questionProxy } from '../activity-proxies';
import type { PageItem } from './items';
import { mayRunAgain } from './run-item';

/** What became of the items of a page before this run of it. Any other item waits for its turn. */
interface FoundItems {
  readonly ended: readonly {
    readonly item: PageItem;
    readonly end: EndOfItem;
    readonly settledAt?: string;
  }[];
  readonly running: readonly PageItem[];
}

/**
 * The one rule of every run after the first: asks for each item that may exist before any is started. What has ended keeps
 * its end, unless a retry may run it again. A run that was made by a reset does not know what the run before it has done, so
 * that any item may exist.
 */
export async function findItems(
  items: readonly PageItem[],
  { earlier = null, again = null }: PageInput,
  wasReset: boolean,
): Promise<FoundItems> {
  const before = earlier === null || wasReset ? null : await knownBefore(earlier);
  const ends = new Map(before?.ends.map((end) => [end.workflowId, end]));
  const left = new Set(before?.left);
  const ended: FoundItems['ended'][number][] = [];
  const asked: PageItem[] = [];
  for (const item of items.filter(({ state }) => state === 'to-come')) {
    const end = ends.get(item.workflowId);
    item.before = end ?? null;
    item.mayExist = before === null || left.has(item.workflowId) || end !== undefined;
    if (end !== undefined && !mayTryAgain(end, again)) ended.push({ item, end, settledAt: end.settledAt });
    else if (item.mayExist) asked.push(item);
  }
  const found = await endsOf(asked);
  const running = asked.filter((_, index) => found[index] === null);
  for (const [index, item] of asked.entries()) {
    const end = found[index] ?? null;
    if (end !== null && !mayRunAgain(item, end, again)) ended.push({ item, end });
  }
  return { ended, running };
}

async function knownBefore(earlier: string): Promise<EarlierPage | null> {
  const { earlierPage } = questionProxy('what the batch has done before');
  const answer = await answerOf(earlierPage(earlier));
  return isEarlierPage(answer) ? answer : null;
}

async function endsOf(items: readonly PageItem[]): Promise<readonly (EndOfItem | null)[]> {
  const { followUpEnds } = questionProxy('which of its follow-ups exist, and how they have ended');
  const named = items.map(({ workflowId, item: { promptDigest } }) => ({ workflowId, promptDigest }));
  let ends: unknown = [];
  while (!areEndsOfItems(ends) || ends.length !== items.length) ends = await answerOf(followUpEnds(named));
  return ends;
}

/** What the server says to a page; null where an operator has ended the question in another way. */
export async function answerOf(question: Promise<unknown>): Promise<unknown> {
  try {
    return await question;
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    return null;
  }
}

/** The end of what goes on beside a workflow, in a scope that is cancelled when it is no longer needed. */
export function ignoreCancellation(error: unknown): void {
  if (!isCancellation(error)) throw error;
}
