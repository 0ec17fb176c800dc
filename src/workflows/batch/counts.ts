import {
  type BatchCounts,
  type EndOfItem,
  type FailedItem,
  isFailure,
  type ItemOutcome,
  type Tolerance,
} from '../../core/batch/batch';
import { type BatchProgress, nextStepOfBatch } from '../../core/batch/workflows';
import { isTerminal } from '../../core/job';
import { addCounts } from '../../core/tally';
import { markdownCode as code, markdownCounts as counted, markdownTable } from '../../core/text';

/** Failures that a summary names. */
const MAX_FIRST_FAILURES = 20;

export const NO_COUNTS: BatchCounts = {
  settled: 0,
  byStatus: {},
  byFailure: {},
  byEvidence: {},
  unknownDeliveries: 0,
};

export function countEnd(counts: BatchCounts, { outcome, evidence, delivery }: EndOfItem): BatchCounts {
  const one = { [outcome]: 1 };
  const end: BatchCounts = {
    settled: 1,
    byStatus: isTerminal(outcome) ? one : {},
    byFailure: isTerminal(outcome) ? {} : one,
    byEvidence: evidence === null ? {} : { [evidence]: 1 },
    unknownDeliveries: delivery === 'unknown' ? 1 : 0,
  };
  return addUp([counts, end]);
}

export function addUp(all: readonly BatchCounts[]): BatchCounts {
  return {
    settled: all.reduce((sum, { settled }) => sum + settled, 0),
    byStatus: addCounts(...all.map(({ byStatus }) => byStatus)),
    byFailure: addCounts(...all.map(({ byFailure }) => byFailure)),
    byEvidence: addCounts(...all.map(({ byEvidence }) => byEvidence)),
    unknownDeliveries: all.reduce((sum, { unknownDeliveries }) => sum + unknownDeliveries, 0),
  };
}

export function failuresOf({ byStatus, byFailure }: Pick<BatchCounts, 'byStatus' | 'byFailure'>): number {
  const ends = Object.entries({ ...byStatus, ...byFailure });
  return ends.reduce(
    (sum, [outcome, count]) => (isFailure({ outcome: outcome as ItemOutcome }) ? sum + count : sum),
    0,
  );
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

/** The current details for the Web UI. */
export function batchDetails(progress: BatchProgress): string {
  const { batchId, message, pages, firstFailures } = progress;
  const rows: [string, string][] = [
    ['state', progress.state],
    ['what to do', nextStepOfBatch(progress.state, progress.byFailure)],
    ...(message === null ? [] : [['why', message] satisfies [string, string]]),
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
  const parts = [`**Batch ${code(batchId)}**`, markdownTable(rows)];
  if (failures.length > 0) parts.push('**First failures**', markdownTable(failures));
  return parts.join('\n\n');
}
