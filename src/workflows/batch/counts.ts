import type { EndOfItem, FailedItem, Tolerance } from '../../core/batch';
import type { BatchCounts, BatchProgress, PageReport } from '../../core/batch-workflows';
import { isTerminal } from '../../core/job';
import { markdownCode as code, markdownTable } from '../../core/text';

export { isFailure } from '../../core/batch';

/** Failures that a summary names. */
const MAX_FIRST_FAILURES = 20;

export const NO_COUNTS: BatchCounts = {
  settled: 0,
  byStatus: {},
  byFailure: {},
  byEvidence: {},
  unknownDeliveries: 0,
};

export function countEnd(counts: BatchCounts, end: EndOfItem): BatchCounts {
  const { outcome, evidence } = end;
  return {
    settled: counts.settled + 1,
    byStatus: isTerminal(outcome) ? plus(counts.byStatus, { [outcome]: 1 }) : counts.byStatus,
    byFailure: isTerminal(outcome) ? counts.byFailure : plus(counts.byFailure, { [outcome]: 1 }),
    byEvidence: evidence === null ? counts.byEvidence : plus(counts.byEvidence, { [evidence]: 1 }),
    unknownDeliveries: counts.unknownDeliveries + (end.delivery === 'unknown' ? 1 : 0),
  };
}

export function addUp(all: readonly BatchCounts[]): BatchCounts {
  return all.reduce(
    (sum, counts) => ({
      settled: sum.settled + counts.settled,
      byStatus: plus(sum.byStatus, counts.byStatus),
      byFailure: plus(sum.byFailure, counts.byFailure),
      byEvidence: plus(sum.byEvidence, counts.byEvidence),
      unknownDeliveries: sum.unknownDeliveries + counts.unknownDeliveries,
    }),
    NO_COUNTS,
  );
}

/** How many of the ends count against the tolerance. */
export function failuresOf({ byStatus, byFailure }: Pick<BatchCounts, 'byStatus' | 'byFailure'>): number {
  return Object.values(byFailure).reduce((sum, count) => sum + count, byStatus.failed ?? 0);
}

/** A percentage counts by its millionths, as whole numbers: 29 / 100 * 100 is less than 29 in floating point. */
const MILLIONTHS = 1_000_000;

/** How many failures are within the tolerance; infinite where nothing was said. A percentage is of all items. */
export function toleratedFailures(tolerate: Tolerance, items: number): number {
  if (tolerate === null) return Infinity;
  if ('items' in tolerate) return tolerate.items;
  return Math.floor((Math.round(tolerate.percent * MILLIONTHS) * items) / (100 * MILLIONTHS));
}

/** The first failures, each once. */
export function firstFailures(all: readonly (readonly FailedItem[])[]): FailedItem[] {
  const byId = new Map<string, FailedItem>();
  for (const { workflowId, outcome, message } of all.flat()) {
    if (byId.size >= MAX_FIRST_FAILURES) break;
    if (!byId.has(workflowId)) byId.set(workflowId, { workflowId, outcome, message });
  }
  return [...byId.values()];
}

function plus(
  one: Readonly<Record<string, number>>,
  other: Readonly<Record<string, number>>,
): Record<string, number> {
  const sum: Record<string, number> = { ...one };
  for (const [name, count] of Object.entries(other)) sum[name] = (sum[name] ?? 0) + count;
  return sum;
}

/** The current details of a batch: a small Markdown table for the Web UI. */
export function batchDetails(progress: BatchProgress): string {
  const { batchId, pages, firstFailures } = progress;
  const rows: [string, string][] = [
    ['state', progress.state],
    ['settled', `${progress.settled} of ${progress.items}`],
    ['open', `${progress.open} (concurrency ${progress.concurrency})`],
    ['by status', counted(progress.byStatus)],
    ['by failure', counted(progress.byFailure)],
    ['by evidence', counted(progress.byEvidence)],
    ['unknown deliveries', String(progress.unknownDeliveries)],
    ['pages', `${pages.handedOver} of ${pages.total} handed over, ${pages.done} done`],
  ];
  const failures = firstFailures.map(({ workflowId, outcome, message }): [string, string] => [
    code(workflowId),
    message === null ? outcome : `${outcome}: ${code(message)}`,
  ]);
  const title = `**Batch ${code(batchId)}**`;
  const parts = [title, markdownTable(rows)];
  if (failures.length > 0) parts.push('**First failures**', markdownTable(failures));
  return parts.join('\n\n');
}

/** The current details of a page of a batch. */
export function pageDetails({ page, open, wants, places, counts }: PageReport): string {
  const rows: [string, string][] = [
    ['settled', String(counts.settled)],
    ['open', `${open} of ${places} places`],
    ['jobs left', String(wants)],
    ['by status', counted(counts.byStatus)],
    ['by failure', counted(counts.byFailure)],
  ];
  return `**Page ${page}**\n\n${markdownTable(rows)}`;
}

function counted(counts: Readonly<Record<string, number>>): string {
  const words = Object.entries(counts).map(([name, count]) => `${code(name)} × ${count}`);
  return words.length === 0 ? '-' : words.join(', ');
}
