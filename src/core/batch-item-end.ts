import type { EndOfItem, ItemOutcome } from './batch';
import { MAX_LINK_CHARACTERS, truncate } from './text';
import { type Evidence, FAILURE_TYPES, type Verdict } from './result';
import { isRecord } from './json';
import { isTerminal } from './job';

/** Characters of a failure's message in a page: those of all its items lie in one payload, its result. */
const MAX_MESSAGE_CHARACTERS = 300;

/** The end by a result. It is looked at, because the workflow of this name may be another program's. */
export function endOfResult(result: unknown): EndOfItem {
  const { status, prLink, followUp } = isRecord(result) ? result : {};
  const { delivery, evidence } = receiptOf(followUp);
  if (typeof status !== 'string' || !isTerminal(status) || delivery === null)
    return without('broken', 'Its result is no job with a receipt.');
  return { outcome: status, delivery, evidence, prLink: linkOf(prLink), message: null };
}

/** The ends without a receipt, in words. */
const WORDS = {
  terminated: 'Somebody terminated the follow-up.',
  'timed-out': 'The workflow ran into its time limit.',
  gone:
    'Its follow-up may have been started and no longer exists (deleted, or older than the retention of the namespace): ' +
    'nobody can tell whether its message was sent. It was not started again.',
  'left-running': 'Somebody else started this follow-up; it goes on.',
} as const;

export function endWithoutReceipt(outcome: keyof typeof WORDS): EndOfItem {
  return without(outcome, WORDS[outcome]);
}

export function endOfCancelled(receipt: unknown): EndOfItem {
  return { ...without('cancelled', 'Somebody cancelled the follow-up.'), ...receiptOf(receipt) };
}

/** @param isCompared whether its prompt is known to differ; otherwise nothing is left to compare */
export function endOfConflict(isCompared: boolean): EndOfItem {
  return isCompared
    ? {
        ...without(
          'conflict',
          'A follow-up of this name carries another prompt; nothing was sent for this item.',
        ),
        delivery: 'not-sent',
      }
    : without('conflict', 'A follow-up of this name exists, and its prompt can no longer be compared.');
}

/** The end of an item that could not even be started, or whose end can't be read. */
export function brokenEnd(message: string): EndOfItem {
  return without('broken', message);
}

export function endOfFailure(type: string, message: string, details: unknown): EndOfItem {
  const known = FAILURE_TYPES.find((each) => each === type);
  const { job, followUp } = isRecord(details) ? details : {};
  const { delivery, evidence } = receiptOf(followUp);
  if (known === undefined || delivery === null) return without('broken', message);
  const prLink = isRecord(job) ? linkOf(job.prLink) : null;
  return { ...without(known, message), delivery, evidence, prLink };
}

const VERDICTS: readonly Verdict[] = ['not-sent', 'accepted', 'rejected', 'unknown'];
const EVIDENCE: readonly Evidence[] = ['seen-active', 'status-changed', 'job-changed', 'confirmed'];

/** Delivery and evidence from a receipt; null for anything else. */
function receiptOf(receipt: unknown): Pick<EndOfItem, 'delivery' | 'evidence'> {
  const { delivery, evidence } = isRecord(receipt) ? receipt : {};
  const { verdict } = isRecord(delivery) ? delivery : {};
  return {
    delivery: VERDICTS.find((each) => each === verdict) ?? null,
    evidence: EVIDENCE.find((each) => each === evidence) ?? null,
  };
}

function linkOf(prLink: unknown): string | null {
  const isLink = typeof prLink === 'string' && prLink.length <= MAX_LINK_CHARACTERS && prLink.isWellFormed();
  return isLink ? prLink : null;
}

function without(outcome: ItemOutcome, message: string): EndOfItem {
  return {
    outcome,
    delivery: null,
    evidence: null,
    prLink: null,
    // A foreign program's words may hold half a character, which would end the worker (sdk-core 1.24).
    message: truncate(message, MAX_MESSAGE_CHARACTERS).toWellFormed(),
  };
}
