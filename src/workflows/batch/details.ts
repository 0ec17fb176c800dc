import type { BatchProgress, PageReport } from '../../contract/batch-workflows';
import { markdownCode as code, markdownTable } from '../../contract/markdown';

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
