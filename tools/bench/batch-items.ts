import type { BatchItemResult } from '../../src/entries/client';
import { BATCH_WORKFLOW } from '../../src/contract/names';
import type { FollowUpRequest } from '../../src/contract/request';
import type { BenchEnvironment } from './bench-environment';

/* The benchmarks of batches share the items, and the check of every item's outcome. */

export const BATCH_ID = 'bench';
const PROJECTS = 20;

/** The percentage of items whose job does not exist, and the percentage of items whose message is lost. */
const ABSENT_PERCENT = 2;
const LOST_PERCENT = 2;

/** Options with short waits, so that the benchmark measures the engine and not the waiting. */
const FAST_OPTIONS: Partial<FollowUpRequest> = {
  polling: { initial: '2s', growth: 0, maximum: '2s', jitter: 0.1 },
  whenActive: 'send',
  reconcileTimeout: '4s',
  prLinkTimeout: '2s',
  maxStaleness: '4s',
};

export function newRequest({ sandbox }: BenchEnvironment, index: number): FollowUpRequest {
  const projectId = `project-${index % PROJECTS}`;
  const percent = index % 100;
  const prompt = 'Please rebase on main and fix the links.';
  if (percent < ABSENT_PERCENT) return { projectId, jobId: `absent-${index}`, prompt, ...FAST_OPTIONS };
  const { jobId } = sandbox.addJob({ projectId, turn: { durationMs: 3_000 } });
  if (percent >= 100 - LOST_PERCENT) {
    sandbox.setFault({ name: 'reset', projectId, jobId, operation: 'message' });
  }
  return { projectId, jobId, prompt, ...FAST_OPTIONS };
}

/** Returns the number of events in all runs of the batch. */
export async function countBatchEvents({ client }: BenchEnvironment): Promise<number> {
  let events = 0;
  for await (const { historyLength } of client.workflow.list({ query: `WorkflowType = '${BATCH_WORKFLOW}'` }))
    events += historyLength;
  return events;
}

/**
 * Compares the outcome of every item with the sandbox's journal. An item is accounted for if its delivery is unknown, or if it was processed
 * exactly once and accepted, or if it was neither processed nor accepted. An item without an outcome must not be processed.
 */
export function checkByJournal(
  { sandbox }: BenchEnvironment,
  requests: readonly FollowUpRequest[],
  results: readonly BatchItemResult[],
): { readonly sentTwice: number; readonly accountedFor: number } {
  const keyOf = (item: { readonly projectId: string | null; readonly jobId: string | null }) =>
    `${item.projectId ?? ''}/${item.jobId ?? ''}`;
  const processed = new Map<string, number>();
  for (const entry of sandbox.journal.entries({ operation: 'message', processed: true }))
    processed.set(keyOf(entry), (processed.get(keyOf(entry)) ?? 0) + 1);
  const deliveries = new Map(results.map((result) => [keyOf(result), result.delivery]));
  const matchingRequests = requests.filter((request) => {
    const delivery = deliveries.get(keyOf(request));
    if (delivery === 'unknown') return true;
    return (processed.get(keyOf(request)) ?? 0) === (delivery === 'accepted' ? 1 : 0);
  });
  const sentTwice = [...processed.values()].filter((count) => count > 1).length;
  return { sentTwice, accountedFor: matchingRequests.length };
}
