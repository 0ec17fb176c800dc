import { type Checked, objectOf, literalOf, orNull, text } from './checks';
import { isTerminal, TERMINAL_STATUSES } from './job';
import {
  FAILURE_TYPES,
  isEvidence,
  isFailureDetails,
  isFollowUpResult,
  isReceipt,
  isVerdict,
  canRetry,
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

export const recordedOutcomeFields = {
  outcome: literalOf(...OUTCOMES),
  /** Null where no receipt tells. */
  delivery: orNull(isVerdict),
  evidence: orNull(isEvidence),
  prLink: orNull(text),
  /** What went wrong, in at most 300 characters; null for a result. */
  message: orNull(text),
};

/** How a follow-up ended. */
export type RecordedOutcome = Checked<ReturnType<typeof objectOf<typeof recordedOutcomeFields>>>;

/** A list of the server holds a hundred memos. */
const MAX_MESSAGE_CHARACTERS = 300;

const { outcome, prLink, message } = recordedOutcomeFields;
const isOutcomeMemo = objectOf({ outcome, prLink, message });

/** What an item that ends leaves in its memo, so that a list of the server tells it. */
export function toOutcomeMemo(receipt: Receipt, { outcome, prLink, message }: RecordedOutcome): object {
  return { ...receipt, outcome, prLink, message };
}

/** Null where a memo holds no {@link toOutcomeMemo}. */
export function outcomeFromMemo(memo: unknown): RecordedOutcome | null {
  if (!isReceipt(memo) || !isOutcomeMemo(memo)) return null;
  const { outcome, prLink, message } = memo;
  return { outcome, ...fieldsFromReceipt(memo), prLink, message };
}

export function outcomeFromResult(result: unknown): RecordedOutcome {
  if (!isFollowUpResult(result) || !isTerminal(result.status))
    return createOutcomeWithoutReceipt('unreadable');
  const { status, prLink, receipt } = result;
  return { outcome: status, ...fieldsFromReceipt(receipt), prLink: boundedLink(prLink), message: null };
}

export const DELIVERY_IN_HISTORY = 'whether the message was sent is in its history.';

export function describeDelivery({ verdict, confirmedBy, sends }: Delivery): string {
  return {
    // An answered 429 was sent, and not processed.
    'not-sent': sends === 0 ? 'Nothing was sent.' : 'The service has processed nothing.',
    rejected: 'The message was rejected.',
    unknown: 'Nobody can tell whether the message arrived.',
    accepted: `The message ${confirmedBy === 'assumed' ? 'is assumed to have arrived' : 'was accepted'}.`,
  }[verdict];
}

/** Whether the message was sent, by what a follow-up that has ended left. */
export function describeReceipt(receipt: Receipt | null): string {
  if (receipt === null) return `It left no receipt: ${DELIVERY_IN_HISTORY}`;
  const description = describeDelivery(receipt.delivery);
  if (receipt.delivery.verdict === 'accepted') return `${description} The agent continues.`;
  return receipt.delivery.verdict === 'unknown'
    ? `${description} If it did, the agent continues.`
    : description;
}

export function describeCancellation(receipt: Receipt | null): string {
  return `The follow-up was cancelled. ${describeReceipt(receipt)}`;
}

export function describeConflict(workflowId: string): string {
  const requestId = decodeURIComponent(workflowId.split(':').at(-1) ?? '');
  return (
    `The follow-up ${workflowId} exists with another prompt: request id ${JSON.stringify(requestId)} is taken. ` +
    'Nothing was sent. Give a new message a new request id; to see the existing one, use its workflow id.'
  );
}

const MESSAGES_WITHOUT_RECEIPT: Partial<Record<Outcome, string>> = {
  terminated: 'Somebody terminated the follow-up.',
  'timed-out': 'The workflow ran into its time limit.',
  missing:
    'The follow-up no longer exists (deleted, or older than the retention of the namespace): nobody can tell whether its ' +
    'message was sent. It was not started again.',
  'left-running': 'Somebody else started this follow-up; it continues.',
  cancelled: 'Somebody cancelled the follow-up.',
  unreadable: 'Its result is no job with a receipt.',
};

export function createOutcomeWithoutReceipt(
  outcome: Outcome,
  message = MESSAGES_WITHOUT_RECEIPT[outcome] ?? outcome,
): RecordedOutcome {
  // A foreign program's words may hold half a character, which would end the worker (sdk-core 1.24).
  const boundedMessage = truncate(message, MAX_MESSAGE_CHARACTERS).toWellFormed();
  return { outcome, delivery: null, evidence: null, prLink: null, message: boundedMessage };
}

export function createCancelledOutcome(receipt: unknown): RecordedOutcome {
  return {
    ...createOutcomeWithoutReceipt('cancelled'),
    ...(isReceipt(receipt) && fieldsFromReceipt(receipt)),
  };
}

/**
 * @param isPromptComparable false where nothing is left to compare its prompt with
 * @param isForeign false where a follow-up of the asker's own, deleted since, may have sent its message
 */
export function createConflictOutcome(isPromptComparable: boolean, isForeign: boolean): RecordedOutcome {
  if (!isPromptComparable)
    return createOutcomeWithoutReceipt(
      'conflict',
      'A follow-up of this name exists, and its prompt can no longer be compared.',
    );
  const reason = 'A follow-up of this name carries another prompt';
  return isForeign
    ? { ...createOutcomeWithoutReceipt('conflict', `${reason}; nothing was sent.`), delivery: 'not-sent' }
    : createOutcomeWithoutReceipt(
        'conflict',
        `${reason}. Nobody can tell whether an earlier one sent this one.`,
      );
}

interface Failure extends Error {
  readonly type?: string | null | undefined;
  readonly details?: readonly unknown[] | null | undefined;
}

/** Undefined for a failure that is none of a follow-up. */
export function parseFollowUpFailure({ type, details }: Failure) {
  const failureType = FAILURE_TYPES.find((each) => each === type);
  const detail = details?.[0];
  return failureType !== undefined && isFailureDetails(detail)
    ? { type: failureType, details: detail }
    : undefined;
}

export function outcomeFromFailure(failure: Failure): RecordedOutcome {
  const followUpFailure = parseFollowUpFailure(failure);
  if (followUpFailure === undefined) return createOutcomeWithoutReceipt('unreadable', failure.message);
  const { job, receipt } = followUpFailure.details;
  const prLink = boundedLink(job?.prLink);
  return {
    ...createOutcomeWithoutReceipt(followUpFailure.type, failure.message),
    ...fieldsFromReceipt(receipt),
    prLink,
  };
}

function fieldsFromReceipt({ delivery, evidence }: Receipt) {
  return { delivery: delivery.verdict, evidence };
}

function boundedLink(link: string | null = null): string | null {
  return link !== null && link.length > MAX_LINK_CHARACTERS ? null : link;
}

/** Which items start again: those provably not sent or rejected, or also those of unknown delivery. */
export const RETRY_SCOPES = ['unsent', 'unsent-or-unknown'] as const;
export type RetryScope = (typeof RETRY_SCOPES)[number];

/** @param retryScope null for a run that is no retry */
export function shouldRetry({ outcome, delivery }: RecordedOutcome, retryScope: RetryScope | null): boolean {
  // The name belongs to somebody else's message.
  if (retryScope === null || outcome === 'conflict') return false;
  if (canRetry(delivery)) return true;
  return retryScope === 'unsent-or-unknown' && (delivery === 'unknown' || delivery === null);
}
