import { createUnreportedOutcome, type SendOutcome, type SendRecord } from '../contract/activities';

/** How a send activity ended that did not report a `SendResult`. */
export type UnreportedSendCause =
  /** The worker reported that nothing was sent: the activity was paused or reset before its send permission. */
  | 'failed before permission'
  /** No attempt reported in time. The Temporal server's timeout carries the record of the latest heartbeat. */
  | 'timed out'
  /** The workflow stopped the send, and the Temporal server confirmed the cancellation. */
  | 'cancelled'
  /** The workflow stopped the send, and no confirmation came: a paused activity keeps its attempt without a timeout. */
  | 'pending'
  /** Another client completed or failed the activity, or the worker failed with an error that proves nothing. */
  | 'completed by another client';

/**
 * The effect of a send that ended without a report. Two facts decide: how the activity ended, and what the Temporal server has
 * recorded. The heartbeat that grants the send permission is recorded before a POST starts. `not-sent` therefore needs a
 * Temporal server that has recorded nothing, at a moment after which no attempt can get a permission:
 *
 * | ended                       | checkpoint | nothing  | unknown |
 * |-----------------------------|------------|----------|---------|
 * | failed before permission    | not-sent   | not-sent | not-sent |
 * | timed out                   | unknown    | not-sent | unknown |
 * | cancelled                   | unknown    | not-sent | unknown |
 * | pending                     | unknown    | unknown  | unknown |
 * | completed by another client | unknown    | unknown  | unknown |
 *
 * @param record what the timeout carries, or what the Temporal server had recorded when the workflow stopped the send; `unknown`
 *   if neither is known
 * @param at now, in milliseconds since the epoch
 */
export function outcomeFromUnreportedSend(
  cause: UnreportedSendCause,
  record: SendRecord,
  at: number,
): SendOutcome {
  const isNothingRecorded = record.kind === 'nothing';
  switch (cause) {
    case 'failed before permission':
      return createNotSentOutcome('the send was paused or reset before its send permission');
    case 'timed out':
      return isNothingRecorded
        ? createNotSentOutcome(
            'no worker sent the message in time: none polls the task queue for sends, or a rate limit delays it',
          )
        : createUnknownOutcome('the worker that was to send the message did not report', record, at);
    case 'cancelled':
      return isNothingRecorded
        ? createNotSentOutcome('no worker had started to send the message')
        : createUnknownOutcome('the send was stopped before it reported', record, at);
    case 'pending':
      return createUnknownOutcome('the send was stopped, and its worker did not report', record, at);
    case 'completed by another client':
      return createUnknownOutcome('another client ended the send', record, at);
  }
}

function createNotSentOutcome(message: string): SendOutcome {
  return { kind: 'postponed', label: 'not_started', message };
}

function createUnknownOutcome(reason: string, record: SendRecord, at: number): SendOutcome {
  const { baseline, sentAt } = record.kind === 'checkpoint' ? record : { baseline: null, sentAt: at };
  return { kind: 'posted', baseline, sentAt, outcome: createUnreportedOutcome(reason) };
}
