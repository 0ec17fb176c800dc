import { expect, it } from '@jest/globals';
import type { SendRecord } from '../../src/contract/activities';
import { outcomeFromUnreportedSend, type UnreportedSendCause } from '../../src/follow-up/unreported-send';
import { job, ms } from './states';

const BASELINE = job('completed');
const CHECKPOINT: SendRecord = { kind: 'checkpoint', baseline: BASELINE, sentAt: ms(99) };
const NOTHING: SendRecord = { kind: 'nothing' };
const UNKNOWN: SendRecord = { kind: 'unknown' };

/** `not-sent`, or `unknown` with the baseline and the time of the POST. */
function effect(ended: UnreportedSendCause, record: SendRecord): string {
  const end = outcomeFromUnreportedSend(ended, record, ms(100));
  if (end.kind === 'postponed') return 'not-sent';
  if (end.kind !== 'posted') return end.kind;
  return `${end.outcome.verdict}, baseline ${end.baseline?.status ?? 'unknown'}, sent at ${end.sentAt / 1_000}`;
}

const SENT = 'unknown, baseline completed, sent at 99';
const PERHAPS = 'unknown, baseline unknown, sent at 100';

// The columns are the records: a checkpoint, nothing, unknown.
it.each<[ended: UnreportedSendCause, checkpoint: string, nothing: string, unknown: string]>([
  ['failed before permission', 'not-sent', 'not-sent', 'not-sent'],
  ['timed out', SENT, 'not-sent', PERHAPS],
  ['cancelled', SENT, 'not-sent', PERHAPS],
  ['pending', SENT, PERHAPS, PERHAPS],
  ['completed by another client', SENT, PERHAPS, PERHAPS],
])('a send that ended as %j, with a checkpoint, nothing or unknown: %s; %s; %s', (ended, ...effects) => {
  expect([CHECKPOINT, NOTHING, UNKNOWN].map((record) => effect(ended, record))).toEqual(effects);
});

it('the message of an unreported send states the reason', () => {
  const end = (ended: UnreportedSendCause, record: SendRecord) =>
    outcomeFromUnreportedSend(ended, record, ms(100));
  expect(end('failed before permission', UNKNOWN)).toEqual({
    kind: 'postponed',
    label: 'not_started',
    message: 'the send was paused or reset before its send permission',
  });
  expect(end('cancelled', CHECKPOINT)).toMatchObject({
    outcome: { label: 'no_report', message: 'the send was stopped before the worker reported its result' },
  });
});
