import { expect, it } from '@jest/globals';
import type { SendRecord } from '../../src/contract/send-result';
import { outcomeFromUnreportedSend, type UnreportedSendCause } from '../../src/follow-up/unreported-send';
import { job, ms } from './states';

const BASELINE = job('completed');
const CHECKPOINT: SendRecord = { kind: 'checkpoint', baseline: BASELINE, sentAt: ms(99) };
const NOTHING: SendRecord = { kind: 'nothing' };
const UNKNOWN: SendRecord = { kind: 'unknown' };

/** Describes the outcome of a send that ended without a report at 100 s. */
function describeOutcome(cause: UnreportedSendCause, record: SendRecord): string {
  const end = outcomeFromUnreportedSend(cause, record, ms(100));
  if (end.kind === 'postponed') return 'not-sent';
  if (end.kind !== 'posted') return end.kind;
  return `${end.outcome.verdict}, baseline ${end.baseline?.status ?? 'unknown'}, sent at ${end.sentAt / 1_000}`;
}

const SENT = 'unknown, baseline completed, sent at 99';
const POSSIBLY_SENT = 'unknown, baseline unknown, sent at 100';

// The columns after the cause are the outcomes for each record: a checkpoint, nothing, unknown.
it.each<[cause: UnreportedSendCause, checkpoint: string, nothing: string, unknown: string]>([
  ['failed before permission', 'not-sent', 'not-sent', 'not-sent'],
  ['timed out', SENT, 'not-sent', POSSIBLY_SENT],
  ['cancelled', SENT, 'not-sent', POSSIBLY_SENT],
  ['pending', SENT, POSSIBLY_SENT, POSSIBLY_SENT],
  ['ended without proof', SENT, POSSIBLY_SENT, POSSIBLY_SENT],
])(
  'a send that ended as %j has, for the records checkpoint, nothing and unknown, these outcomes: %s; %s; %s',
  (cause, ...outcomes) => {
    expect([CHECKPOINT, NOTHING, UNKNOWN].map((record) => describeOutcome(cause, record))).toEqual(outcomes);
  },
);

it.each<[cause: UnreportedSendCause, record: SendRecord, label: string, message: string]>([
  [
    'failed before permission',
    UNKNOWN,
    'not_started',
    'the send was paused or reset before its send permission',
  ],
  [
    'timed out',
    NOTHING,
    'not_started',
    'no worker sent the message in time: no worker polls the task queue for sends, or a rate limit delays the send',
  ],
  ['timed out', CHECKPOINT, 'no_report', 'the worker did not report the result of the send in time'],
  ['cancelled', NOTHING, 'not_started', 'no worker had started to send the message'],
  [
    'cancelled',
    { ...NOTHING, lastFailure: 'codec failed' },
    'not_started',
    'nothing was sent: the latest attempt of the send failed (codec failed)',
  ],
  ['cancelled', CHECKPOINT, 'no_report', 'the send was stopped before the worker reported its result'],
  ['pending', NOTHING, 'no_report', 'the send was stopped, and the worker did not report'],
  ['ended without proof', NOTHING, 'no_report', "the send activity ended without a worker's report"],
])(
  'the message of a send that ended as %j with the record %j states the reason',
  (cause, record, label, message) => {
    const end = outcomeFromUnreportedSend(cause, record, ms(100));
    expect(end.kind === 'posted' ? end.outcome : end).toMatchObject({ label, message });
  },
);
