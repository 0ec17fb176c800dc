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

/** The outcomes of a follow-up, and the additional outcomes of batch items. The messages below explain the additional outcomes. */
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

/** Returns whether an outcome counts as a failure for `maxFailures` of a batch. */
export function isFailure({ outcome }: { readonly outcome: Outcome }): boolean {
  return outcome !== 'completed' && outcome !== 'archived';
}

export const recordedOutcomeFields = {
  outcome: literalOf(...OUTCOMES),
  /** The verdict of the receipt. The value is null if the receipt is missing or can't be read. */
  delivery: orNull(isVerdict),
  evidence: orNull(isEvidence),
  prLink: orNull(text),
  /** The reason of a failure, in at most 300 characters. The value is null for a result. */
  message: orNull(text),
};

/** How a follow-up ended: its outcome and the fields that a list of results shows. */
export type RecordedOutcome = Checked<ReturnType<typeof objectOf<typeof recordedOutcomeFields>>>;

/** The limit keeps a visibility list small, because one page of the list has the memos of up to 250 workflows. */
const MAX_MESSAGE_CHARACTERS = 300;

const { outcome, prLink, message } = recordedOutcomeFields;
const isOutcomeMemo = objectOf({ outcome, prLink, message });

/**
 * Creates the memo of a batch item that ends, or of a cancelled follow-up. A visibility list returns memos, so the outcome needs
 * no further request.
 */
export function toOutcomeMemo(receipt: Receipt, { outcome, prLink, message }: RecordedOutcome): object {
  return { ...receipt, outcome, prLink, message };
}

/** Returns the outcome in a memo that {@link toOutcomeMemo} created; null for any other value. */
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

export const DELIVERY_IN_HISTORY = 'the workflow history shows whether the message was sent.';

export function describeDelivery({ verdict, confirmedBy, sends }: Delivery): string {
  return {
    // A POST that received 429 was sent, and the agent service did not process it.
    'not-sent': sends === 0 ? 'Nothing was sent.' : 'The agent service did not process the message.',
    rejected: 'The message was rejected.',
    unknown: 'It is unknown whether the message arrived.',
    accepted: `The message ${confirmedBy === 'assumed' ? 'is assumed to have arrived' : 'was accepted'}.`,
  }[verdict];
}

/** Describes the delivery of a follow-up that ended without its final job, in one or two sentences. */
export function describeReceipt(receipt: Receipt | null): string {
  if (receipt === null) return `The receipt is missing: ${DELIVERY_IN_HISTORY}`;
  const description = describeDelivery(receipt.delivery);
  if (receipt.delivery.verdict === 'accepted') return `${description} The agent continues.`;
  return receipt.delivery.verdict === 'unknown'
    ? `${description} If the message arrived, the agent continues.`
    : description;
}

export function describeCancellation(receipt: Receipt | null): string {
  return `The follow-up was cancelled. ${describeReceipt(receipt)}`;
}

export function describeConflict(workflowId: string): string {
  const requestId = decodeURIComponent(workflowId.split(':').at(-1) ?? '');
  return (
    `The follow-up ${workflowId} exists with another prompt, so the request ID ${JSON.stringify(requestId)} can't be used. ` +
    'Nothing was sent. Send a new message with a new request ID. To see the existing follow-up, use its workflow ID.'
  );
}

const MESSAGES_WITHOUT_RECEIPT: Partial<Record<Outcome, string>> = {
  terminated: 'The follow-up was terminated.',
  'timed-out': 'The workflow timed out.',
  missing:
    'The follow-up no longer exists: it was deleted or is older than the retention of the namespace. It is unknown whether its ' +
    'message was sent. The follow-up was not started again.',
  conflict:
    'The workflow ID of this follow-up belongs to a workflow with another prompt, or with a prompt that can no longer be compared. ' +
    'This message was not sent unless an earlier run with this ID sent it.',
  'left-running': 'Another client started this follow-up, so the follow-up continues.',
  cancelled: 'The follow-up was cancelled.',
  unreadable: 'The result of the workflow is not a job with a receipt.',
};

export function createOutcomeWithoutReceipt(
  outcome: Outcome,
  message = MESSAGES_WITHOUT_RECEIPT[outcome] ?? outcome,
): RecordedOutcome {
  // The message of another program may have a lone surrogate, which would end the worker process (sdk-core 1.24).
  const boundedMessage = truncate(message, MAX_MESSAGE_CHARACTERS).toWellFormed();
  return { outcome, delivery: null, evidence: null, prLink: null, message: boundedMessage };
}

interface Failure extends Error {
  readonly type?: string | null | undefined;
  readonly details?: readonly unknown[] | null | undefined;
}

/** Returns the type and the details of a follow-up's failure; undefined for any other failure. */
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

/** Which items a retry starts again: `unsent` are items that were provably not sent or were rejected. */
export const RETRY_SCOPES = ['unsent', 'unsent-or-unknown'] as const;
export type RetryScope = (typeof RETRY_SCOPES)[number];

/** Returns whether an item starts again. @param retryScope null if the run is not a retry */
export function shouldRetry({ outcome, delivery }: RecordedOutcome, retryScope: RetryScope | null): boolean {
  // The workflow ID belongs to another message, so the item can't start.
  if (retryScope === null || outcome === 'conflict') return false;
  if (canRetry(delivery)) return true;
  return retryScope === 'unsent-or-unknown' && (delivery === 'unknown' || delivery === null);
}
