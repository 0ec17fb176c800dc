import { expect, it } from '@jest/globals';
import type { SendRecord } from '../../src/core/activities';
import { endOfUnreportedSend, type UnreportedSend } from '../../src/follow-up/unreported-send';
import { job, ms } from './states';

const BASELINE = job('completed');
const CHECKPOINT: SendRecord = { kind: 'checkpoint', baseline: BASELINE, sentAt: ms(99) };
const NOTHING: SendRecord = { kind: 'nothing' };
const UNKNOWN: SendRecord = { kind: 'unknown' };

/** `not-sent`, or `unknown` with the baseline and the time of the POST. */
function effect(ended: UnreportedSend, record: SendRecord): string {
  const end = endOfUnreportedSend(ended, record, ms(100));
  if (end.kind === 'postponed') return 'not-sent';
  if (end.kind !== 'posted') return end.kind;
  return `${end.outcome.verdict}, baseline ${end.baseline?.status ?? 'unknown'}, sent at ${end.sentAt / 1_000}`;
}

const SENT = 'unknown, baseline completed, sent at 99';
const PERHAPS = 'unknown, baseline unknown, sent at 100';

// The columns are the records: a checkpoint, nothing, unknown.
it.each<[ended: UnreportedSend, checkpoint: string, nothing: string, unknown: string]>([
  [{ kind: 'failed before permission', message: 'paused' }, 'not-sent', 'not-sent', 'not-sent'],
  [{ kind: 'cancelled' }, SENT, 'not-sent', PERHAPS],
  [{ kind: 'pending' }, SENT, PERHAPS, PERHAPS],
  [{ kind: 'completed by another client' }, SENT, PERHAPS, PERHAPS],
])('a send that ended as %j, with a checkpoint, nothing or unknown: %s; %s; %s', (ended, ...effects) => {
  expect([CHECKPOINT, NOTHING, UNKNOWN].map((record) => effect(ended, record))).toEqual(effects);
});

it('a send that timed out has the record that the timeout carries, and the earlier record decides nothing', () => {
  for (const earlier of [CHECKPOINT, NOTHING, UNKNOWN]) {
    const effects = [CHECKPOINT, NOTHING, UNKNOWN].map((record) =>
      effect({ kind: 'timed out', record }, earlier),
    );
    expect(effects).toEqual([SENT, 'not-sent', PERHAPS]);
  }
});

it('the message of an unreported send states the reason, and keeps the reason of the worker', () => {
  const end = (ended: UnreportedSend, record: SendRecord) => endOfUnreportedSend(ended, record, ms(100));
  expect(end({ kind: 'failed before permission', message: 'it was paused' }, UNKNOWN)).toEqual({
    kind: 'postponed',
    label: 'not_started',
    message: 'it was paused',
  });
  expect(end({ kind: 'cancelled' }, CHECKPOINT)).toMatchObject({
    outcome: { label: 'no_report', message: 'the send was given up before it reported' },
  });
});
