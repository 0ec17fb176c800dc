import { createUnreportedOutcome, type SendOutcome, type SendRecord } from '../contract/send-result';

/** How a send activity ended without reporting a `SendResult`. */
export type UnreportedSendCause =
  /** The worker reported that nothing was sent, because the activity was paused or reset before its send permission. */
  | 'failed before permission'
  /** No attempt reported its result in time. The Temporal server's timeout has the details of the latest heartbeat. */
  | 'timed out'
  /** The workflow stopped the send, and the Temporal server confirmed the cancellation. */
  | 'cancelled'
  /**
   * The workflow stopped the send, but the cancellation was not confirmed, because the attempt of a paused activity has no
   * timeout.
   */
  | 'pending'
  /**
   * Any other end of the activity without a worker's report. Another client completed or failed the activity, or the activity
   * failed with an error that proves nothing.
   */
  | 'ended without proof';

/**
 * Returns the outcome of a send that ended without a report. Two facts decide: how the activity ended, and the Temporal server's
 * record of it. The Temporal server records the heartbeat that requests the send permission before a POST starts. The verdict is
 * therefore `not-sent` only if the record was empty and, after it was read, no attempt can get a permission. A worker that reports
 * that nothing was sent needs no record. The cells of the table are verdicts:
 *
 * | cause                    | record: checkpoint | record: nothing | record: unknown |
 * |--------------------------|--------------------|-----------------|-----------------|
 * | failed before permission | not-sent           | not-sent        | not-sent        |
 * | timed out                | unknown            | not-sent        | unknown         |
 * | cancelled                | unknown            | not-sent        | unknown         |
 * | pending                  | unknown            | unknown         | unknown         |
 * | ended without proof      | unknown            | unknown         | unknown         |
 *
 * @param record the record in the timeout, or the record at the time when the workflow stopped the send. The kind is `unknown` if
 * there is neither.
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
            'no worker sent the message in time: no worker polls the task queue for sends, or a rate limit delays the send',
          )
        : createUnknownOutcome('the worker did not report the result of the send in time', record, at);
    case 'cancelled':
      return isNothingRecorded
        ? createNotSentOutcome(
            record.lastFailure === undefined
              ? 'no worker had started to send the message'
              : `nothing was sent: the latest attempt of the send failed (${record.lastFailure})`,
          )
        : createUnknownOutcome('the send was stopped before the worker reported its result', record, at);
    case 'pending':
      return createUnknownOutcome('the send was stopped, and the worker did not report', record, at);
    case 'ended without proof':
      return createUnknownOutcome("the send activity ended without a worker's report", record, at);
  }
}

function createNotSentOutcome(message: string): SendOutcome {
  return { kind: 'postponed', label: 'not_started', message };
}

function createUnknownOutcome(reason: string, record: SendRecord, at: number): SendOutcome {
  const { baseline, sentAt } = record.kind === 'checkpoint' ? record : { baseline: null, sentAt: at };
  return { kind: 'posted', baseline, sentAt, outcome: createUnreportedOutcome(reason) };
}
