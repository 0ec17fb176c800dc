import {
  noReport,
  type RequestFailure,
  type SendCheckpoint,
  type SendEnd,
  type SendRecord,
} from '../core/activities';

/** How a send activity ended that did not report a `SendResult`. */
export type UnreportedSend =
  /** The worker reported that nothing was sent: the activity was paused or reset before its send permission. */
  | { readonly kind: 'failed before permission'; readonly message: string }
  /** No attempt reported in time. The Temporal server's timeout carries the record of the latest heartbeat. */
  | { readonly kind: 'timed out'; readonly record: SendRecord }
  /** The workflow gave up the send, and the Temporal server confirmed the cancellation. */
  | { readonly kind: 'cancelled' }
  /** The workflow gave up the send, and no confirmation came: a paused activity keeps its attempt without a timeout. */
  | { readonly kind: 'pending' }
  /** Another client completed or failed the activity, or the worker failed with an error that proves nothing. */
  | { readonly kind: 'completed by another client' };

/**
 * The effect of a send that ended without a report. Two facts decide: how the activity ended, and what the Temporal server has
 * recorded. The heartbeat that grants the send permission is recorded before a POST starts. `not-sent` therefore needs the
 * server's word that nothing is recorded, at a moment after which no attempt can get a permission:
 *
 * | ended                       | checkpoint | nothing  | unknown |
 * |-----------------------------|------------|----------|---------|
 * | failed before permission    | not-sent   | not-sent | not-sent |
 * | timed out                   | unknown    | not-sent | unknown |
 * | cancelled                   | unknown    | not-sent | unknown |
 * | pending                     | unknown    | unknown  | unknown |
 * | completed by another client | unknown    | unknown  | unknown |
 *
 * @param record what the Temporal server had recorded when the workflow gave up the send; `unknown` if it did not
 * @param at now, in milliseconds since the epoch
 */
export function endOfUnreportedSend(ended: UnreportedSend, record: SendRecord, at: number): SendEnd {
  switch (ended.kind) {
    case 'failed before permission':
      return notSent(ended.message);
    case 'timed out':
      return ended.record.kind === 'nothing'
        ? notSent(
            'no worker sent the message in time: none polls the task queue for sends, or a rate limit delays it',
          )
        : maybeSent('the worker that was to send the message did not report', ended.record, at);
    case 'cancelled':
      return record.kind === 'nothing'
        ? notSent('no worker had started to send the message')
        : maybeSent('the send was given up before it reported', record, at);
    case 'pending':
      return maybeSent('the send was given up, and its worker did not report', record, at);
    case 'completed by another client':
      return maybeSent('another client ended the send', record, at);
  }
}

function notSent(message: string): SendEnd {
  const failure: RequestFailure = { label: 'not_started', message };
  return { kind: 'postponed', ...failure };
}

function maybeSent(why: string, record: SendRecord, at: number): SendEnd {
  const unknown: SendCheckpoint = { baseline: null, sentAt: at };
  const { baseline, sentAt } = record.kind === 'checkpoint' ? record : unknown;
  return { kind: 'posted', baseline, sentAt, outcome: noReport(why) };
}
