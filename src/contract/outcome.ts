import { type Checked, fields, oneOf, orNull, text } from './checks';
import { isTerminal, TERMINAL_STATUSES } from './job';
import {
  FAILURE_TYPES,
  isEvidence,
  isFailureDetails,
  isFollowUpResult,
  isReceipt,
  isVerdict,
  mayBeRetried,
  type Delivery,
  type Receipt,
} from './result';
import { MAX_LINK_CHARACTERS, truncate } from './text';

/** The ends of a follow-up, and those that a batch tells of its items; their messages below explain them. */
export const OUTCOMES = [
  ...TERMINAL_STATUSES,
  ...FAILURE_TYPES,
  'cancelled',
  'terminated',
  'timed-out',
  'conflict',
  'missing',
  'left-running',
  'unreadable',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** Whether an outcome counts as a failure for `maxFailures` of a batch. */
export function isFailure({ outcome }: { readonly outcome: Outcome }): boolean {
  return outcome !== 'completed' && outcome !== 'archived';
}

export const endFields = {
  outcome: oneOf(...OUTCOMES),
  /** Null where no receipt tells. */
  delivery: orNull(isVerdict),
  evidence: orNull(isEvidence),
  prLink: orNull(text),
  /** What went wrong, in at most 300 characters; null for a result. */
  message: orNull(text),
};

/** How a follow-up ended. */
export type End = Checked<ReturnType<typeof fields<typeof endFields>>>;

/** A list of the server holds a hundred memos. */
const MAX_MESSAGE_CHARACTERS = 300;

const { outcome, prLink, message } = endFields;
const isMemoOfEnd = fields({ outcome, prLink, message });

/** What an item that ends leaves in its memo, so that a list of the server tells it. */
export function memoOfEnd(receipt: Receipt, { outcome, prLink, message }: End): object {
  return { ...receipt, outcome, prLink, message };
}

/** Null where a memo holds no {@link memoOfEnd}. */
export function endOfMemo(memo: unknown): End | null {
  if (!isReceipt(memo) || !isMemoOfEnd(memo)) return null;
  const { outcome, prLink, message } = memo;
  return { outcome, ...byReceipt(memo), prLink, message };
}

export function endOfResult(result: unknown): End {
  if (!isFollowUpResult(result) || !isTerminal(result.status)) return endWithoutReceipt('unreadable');
  const { status, prLink, receipt } = result;
  return { outcome: status, ...byReceipt(receipt), prLink: boundedLink(prLink), message: null };
}

export const IN_HISTORY = 'whether the message was sent is in its history.';

export function deliveryInWords({ verdict, confirmedBy, sends }: Delivery): string {
  return {
    // An answered 429 was sent, and not processed.
    'not-sent': sends === 0 ? 'Nothing was sent.' : 'The service has processed nothing.',
    rejected: 'The message was rejected.',
    unknown: 'Nobody can tell whether the message arrived.',
    accepted: `The message ${confirmedBy === 'assumed' ? 'is assumed to have arrived' : 'was accepted'}.`,
  }[verdict];
}

/** Whether the message was sent, by what a follow-up that has ended left. */
export function sentInWords(receipt: Receipt | null): string {
  if (receipt === null) return `It left no receipt: ${IN_HISTORY}`;
  const words = deliveryInWords(receipt.delivery);
  if (receipt.delivery.verdict === 'accepted') return `${words} The agent continues.`;
  return receipt.delivery.verdict === 'unknown' ? `${words} If it did, the agent continues.` : words;
}

export function cancelledInWords(receipt: Receipt | null): string {
  return `The follow-up was cancelled. ${sentInWords(receipt)}`;
}

export function conflictInWords(workflowId: string): string {
  const requestId = decodeURIComponent(workflowId.split(':').at(-1) ?? '');
  return (
    `The follow-up ${workflowId} exists with another prompt: request id ${JSON.stringify(requestId)} is taken. ` +
    'Nothing was sent. Give a new message a new request id; to see the existing one, use its workflow id.'
  );
}

const WITHOUT_RECEIPT: Partial<Record<Outcome, string>> = {
  terminated: 'Somebody terminated the follow-up.',
  'timed-out': 'The workflow ran into its time limit.',
  missing:
    'The follow-up no longer exists (deleted, or older than the retention of the namespace): nobody can tell whether its ' +
    'message was sent. It was not started again.',
  'left-running': 'Somebody else started this follow-up; it continues.',
  cancelled: 'Somebody cancelled the follow-up.',
  unreadable: 'Its result is no job with a receipt.',
};

export function endWithoutReceipt(outcome: Outcome, message = WITHOUT_RECEIPT[outcome] ?? outcome): End {
  // A foreign program's words may hold half a character, which would end the worker (sdk-core 1.24).
  const words = truncate(message, MAX_MESSAGE_CHARACTERS).toWellFormed();
  return { outcome, delivery: null, evidence: null, prLink: null, message: words };
}

export function endOfCancelled(receipt: unknown): End {
  return { ...endWithoutReceipt('cancelled'), ...(isReceipt(receipt) && byReceipt(receipt)) };
}

/**
 * @param isCompared false where nothing is left to compare its prompt with
 * @param isForeign false where a follow-up of the asker's own, deleted since, may have sent its message
 */
export function endOfConflict(isCompared: boolean, isForeign: boolean): End {
  if (!isCompared)
    return endWithoutReceipt(
      'conflict',
      'A follow-up of this name exists, and its prompt can no longer be compared.',
    );
  const words = 'A follow-up of this name carries another prompt';
  return isForeign
    ? { ...endWithoutReceipt('conflict', `${words}; nothing was sent.`), delivery: 'not-sent' }
    : endWithoutReceipt('conflict', `${words}. Nobody can tell whether an earlier one sent this one.`);
}

interface Failure extends Error {
  readonly type?: string | null | undefined;
  readonly details?: readonly unknown[] | null | undefined;
}

/** Undefined for a failure that is none of a follow-up. */
export function failureOf({ type, details }: Failure) {
  const own = FAILURE_TYPES.find((each) => each === type);
  const detail = details?.[0];
  return own !== undefined && isFailureDetails(detail) ? { type: own, details: detail } : undefined;
}

export function endOfFailure(failure: Failure): End {
  const own = failureOf(failure);
  if (own === undefined) return endWithoutReceipt('unreadable', failure.message);
  const { job, receipt } = own.details;
  const prLink = boundedLink(job?.prLink);
  return { ...endWithoutReceipt(own.type, failure.message), ...byReceipt(receipt), prLink };
}

function byReceipt({ delivery, evidence }: Receipt) {
  return { delivery: delivery.verdict, evidence };
}

function boundedLink(link: string | null = null): string | null {
  return link !== null && link.length > MAX_LINK_CHARACTERS ? null : link;
}

/** Which items start again: those provably not sent or rejected, or also those of unknown delivery. */
export const TRY_AGAIN = ['unsent', 'unsent-or-unknown'] as const;
export type TryAgain = (typeof TRY_AGAIN)[number];

/** @param again null for a run that is no retry */
export function mayTryAgain({ outcome, delivery }: End, again: TryAgain | null): boolean {
  // The name belongs to somebody else's message.
  if (again === null || outcome === 'conflict') return false;
  if (mayBeRetried(delivery)) return true;
  return again === 'unsent-or-unknown' && (delivery === 'unknown' || delivery === null);
}
