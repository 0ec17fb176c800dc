import { expect, it } from '@jest/globals';
import { grantFirstPermit, grantOperatorPermit, grantResendPermit } from '../../src/follow-up/permits';
import {
  ACCEPTED,
  accepted,
  afterSend,
  describeDelivery,
  RATE_LIMITED,
  LOST,
  needsDecision,
  NOT_CONNECTED,
  NOT_DELIVERED,
  play,
  posted,
  RECONCILED,
  REJECTED,
  resendAllowed,
  sendEnded,
  describeStep,
  unknown,
  unsent,
} from './states';

it('a permit names the only run that may use it', () => {
  expect(grantFirstPermit({ firstRunId: 'run-1' })).toEqual({ kind: 'first', runId: 'run-1' });
  expect(grantResendPermit({ firstRunId: 'run-1', isResendUsed: false })).toEqual({
    kind: 'resend',
    runId: 'run-1',
  });
  expect(grantResendPermit({ firstRunId: 'run-1', isResendUsed: true })).toBeNull();
  expect(grantOperatorPermit('run-2')).toEqual({ kind: 'operator', runId: 'run-2' });
});

it.each([
  ['while the message is unsent', unsent(), 'first'],
  ['after a POST that was not processed', afterSend(posted(RATE_LIMITED)), 'first'],
  ['after a POST without a connection', afterSend(posted(NOT_CONNECTED)), 'first'],
  ['after onUnknownDelivery: resend', resendAllowed(), 'resend'],
  [
    'after a resend that was not processed',
    play(resendAllowed(), sendEnded(posted(RATE_LIMITED), 300)),
    'resend',
  ],
  ['after an operator decided not-delivered', play(needsDecision(), NOT_DELIVERED), 'operator'],
])('a POST is permitted %s', (_, state, permit) => {
  expect(describeStep(state, 300)).toMatch(new RegExp(`: send at \\d+(\\.\\d+)?, ${permit} permit$`));
});

it.each([
  ['after a POST that was accepted', accepted('completed')],
  ['after a POST of unknown delivery', unknown('completed')],
  ['after a POST that was rejected', afterSend(posted(REJECTED))],
  ['while an operator must decide', needsDecision()],
  ['after the resend was accepted', play(resendAllowed(), sendEnded(posted(ACCEPTED), 300))],
  ['after the resend was rejected', play(resendAllowed(), sendEnded(posted(REJECTED), 300))],
  ['after the delivery of the resend is unknown', play(resendAllowed(), sendEnded(posted(LOST), 300))],
  ['after reconciling the resend', play(resendAllowed(), sendEnded(posted(LOST), 300), RECONCILED)],
  ['after the operator’s POST', play(needsDecision(), NOT_DELIVERED, sendEnded(posted(LOST), 300))],
])('no POST is permitted %s', (_, state) => {
  for (const second of [300, 331, 1_000]) expect(describeStep(state, second)).not.toContain('send at');
});

it('every decision of an operator permits one POST', () => {
  const lost = sendEnded(posted(LOST, 'active'), 300);
  const reconciled = play(needsDecision(), NOT_DELIVERED, lost, RECONCILED);
  expect(describeDelivery(reconciled)).toBe('unknown, reconciled');
  expect(describeDelivery(play(reconciled, NOT_DELIVERED))).toBe('unknown, operator permit');
});
