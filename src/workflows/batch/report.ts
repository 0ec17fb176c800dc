import type { Allotment, PageReport } from '../../contract/batch-workflows';
import { isRecord } from '../../contract/field-reader';

/**
 * A page's report as it came over the wire.
 *
 * @param pages how many pages the batch has
 * @returns null where it is none: anybody can send a signal, and nothing that is sent may stall a batch
 */
export function readReport(value: unknown, pages: number): PageReport | null {
  if (!isRecord(value)) return null;
  const { run, pageRun, page, after, followedBy, wants, places, open, counts, failures, done } = value;
  const isReport =
    typeof run === 'string' &&
    typeof pageRun === 'string' &&
    isCount(page) &&
    page >= 1 &&
    page <= pages &&
    (after === null || isCount(after)) &&
    typeof followedBy === 'boolean' &&
    [wants, places, open].every(isCount) &&
    isRecord(counts) &&
    [counts.settled, counts.unknownDeliveries].every(isCount) &&
    [counts.byStatus, counts.byFailure, counts.byEvidence].every(isCounts) &&
    Array.isArray(failures) &&
    failures.every(isFailedItem) &&
    typeof done === 'boolean';
  return isReport ? (value as unknown as PageReport) : null;
}

const MODES: readonly Allotment['mode'][] = ['run', 'drain', 'leave', 'cancel'];

/** A batch's word to its page as it came over the wire; null where it is none. */
export function readAllotment(value: unknown): Allotment | null {
  if (!isRecord(value)) return null;
  const { places, tolerated, mode } = value;
  const isAllotment =
    isCount(places) && (tolerated === null || isCount(tolerated)) && MODES.some((each) => each === mode);
  return isAllotment ? (value as unknown as Allotment) : null;
}

function isCounts(value: unknown): boolean {
  return isRecord(value) && Object.entries(value).every(([name, count]) => isText(name) && isCount(count));
}

function isFailedItem(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { workflowId, outcome, message } = value;
  return isText(workflowId) && isText(outcome) && (message === null || isText(message));
}

/** Half a character in what a batch hands on would end its worker (sdk-core 1.24). */
function isText(value: unknown): boolean {
  return typeof value === 'string' && value.isWellFormed();
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
