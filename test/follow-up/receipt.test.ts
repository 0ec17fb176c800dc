import { expect, it } from '@jest/globals';
import { sha256Hex } from '../../src/contract/ids';
import { nextStep } from '../../src/follow-up/next-step';
import {
  isoSecond,
  lastResponseText,
  toFollowUpProgress,
  toReceipt,
  reportedDelivery,
  sentence,
} from '../../src/follow-up/receipt';
import type { FollowUpState } from '../../src/follow-up/state';
import {
  ACCEPTED,
  accepted,
  afterReads,
  afterSend,
  DELIVERED,
  RATE_LIMITED,
  LOCK_HELD,
  LOST,
  ms,
  needsDecision,
  NOT_CONNECTED,
  NOT_DELIVERED,
  notRead,
  notReady,
  play,
  posted,
  RECONCILED,
  REFUSED,
  REJECTED,
  resendAllowed,
  resetEnd,
  sendEnded,
  unknown,
  unsent,
  unsentAfterReset,
} from './states';

// The columns are the verdict, the source that confirmed the delivery, and the POSTs that may have reached the agent service.
it.each<[title: string, state: FollowUpState, verdict: string, confirmedBy: string | null, sends: number]>([
  ['nothing was sent', unsent(), 'not-sent', null, 0],
  ['the POST had no connection', afterSend(posted(NOT_CONNECTED)), 'not-sent', null, 0],
  ['the POST received 429', afterSend(posted(RATE_LIMITED)), 'not-sent', null, 1],
  ['the POST was accepted', accepted('completed'), 'accepted', 'response', 1],
  ['the POST was rejected', afterSend(posted(REJECTED)), 'rejected', null, 1],
  ['the POST had no response', unknown('completed'), 'unknown', null, 1],
  ['a read showed the turn', afterReads(unknown('completed'), '130 active'), 'accepted', 'read', 1],
  ['an operator decided', play(needsDecision(), DELIVERED), 'accepted', 'operator', 1],
  [
    'the delivery is assumed',
    play(unknown('active', { onUnknownDelivery: 'assume-delivered' }), RECONCILED),
    'accepted',
    'assumed',
    1,
  ],
  ['a resend is allowed', resendAllowed(), 'unknown', null, 1],
  [
    'the resend was accepted',
    play(resendAllowed(), sendEnded(posted(ACCEPTED), 300)),
    'accepted',
    'response',
    2,
  ],
  ['the resend had no response', play(resendAllowed(), sendEnded(posted(LOST), 300)), 'unknown', null, 2],
  [
    'the resend received 429',
    play(resendAllowed(), sendEnded(posted(RATE_LIMITED), 300)),
    'unknown',
    null,
    2,
  ],
  [
    'the resend was rejected, but the first POST may have arrived',
    play(resendAllowed(), sendEnded(posted(REJECTED), 300)),
    'unknown',
    null,
    2,
  ],
  ['a reset made the run, and the run before it may have sent', unsentAfterReset(), 'unknown', null, 1],
  [
    'the send of a run that a reset made was not permitted',
    play(unsentAfterReset(), sendEnded(resetEnd('completed'))),
    'unknown',
    null,
    1,
  ],
  [
    'an operator permitted a POST of a run that a reset made',
    play(
      unsentAfterReset({ onUnknownDelivery: 'ask' }),
      sendEnded(resetEnd('active')),
      RECONCILED,
      NOT_DELIVERED,
      sendEnded(posted(REJECTED), 300),
    ),
    'unknown',
    null,
    2,
  ],
  [
    'an operator permitted a POST of a run that a reset made, and the POST received 429',
    play(
      unsentAfterReset({ onUnknownDelivery: 'ask' }),
      sendEnded(resetEnd('active')),
      RECONCILED,
      NOT_DELIVERED,
      sendEnded(posted(RATE_LIMITED), 300),
    ),
    'unknown',
    null,
    2,
  ],
])('the reported delivery: %s', (_, state, verdict, confirmedBy, sends) => {
  expect(reportedDelivery(state)).toEqual({ verdict, confirmedBy, sends });
});

const DONE = afterReads(accepted('failed'), '110 active, 130 completed+link');

it('a receipt has the delivery, the evidence, the baseline, the counts and the times, but not the prompt', () => {
  expect(toReceipt(DONE, ms(131))).toEqual({
    requestId: 'r',
    delivery: { verdict: 'accepted', confirmedBy: 'response', sends: 1 },
    evidence: 'seen-active',
    baseline: { status: 'failed', prLink: null, archivedAt: null },
    promptDigest: sha256Hex('Hello'),
    polls: 2,
    sentAt: '1970-01-01T00:01:39.500Z',
    endedAt: '1970-01-01T00:02:11.000Z',
    responseCounts: { active: 1, completed: 1 },
  });
});

it.each([
  ['nothing was sent', unsent()],
  ['the delivery is unknown', afterReads(unknown('active'), '130 completed, 160 completed')],
  ['no status is accepted yet', afterReads(accepted('completed'), '130 completed')],
])('a receipt has no evidence if %s', (_, state) => {
  expect(toReceipt(state, null)).toMatchObject({ evidence: null, endedAt: null });
});

const progress = (state: FollowUpState, second: number, isSending: boolean) =>
  toFollowUpProgress(
    state,
    nextStep(state, ms(second), () => 0.5),
    isSending,
  );

it('the progress has the phase, the job, the delivery, the counts and the times', () => {
  expect(progress(afterReads(accepted('completed'), '130 active'), 130, false)).toMatchObject({
    phase: 'watching',
    job: { status: 'active' },
    delivery: { verdict: 'accepted' },
    evidence: null,
    polls: 1,
    responseCounts: { active: 1 },
    nextPollAt: '1970-01-01T00:02:15.000Z',
    deadlineAt: '1970-01-01T01:00:00.000Z',
    lastResponse: 'active',
  });
});

// The columns are the delivery before the send, and the delivery during the send.
it.each([
  ['the first POST', unsent(), { verdict: 'not-sent', sends: 0 }, { verdict: 'unknown', sends: 1 }],
  [
    'a POST after a 429',
    afterSend(posted(RATE_LIMITED)),
    { verdict: 'not-sent', sends: 1 },
    { verdict: 'unknown', sends: 2 },
  ],
  ['the resend', resendAllowed(), { verdict: 'unknown', sends: 1 }, { verdict: 'unknown', sends: 2 }],
])('during a send, the delivery is never reported as not-sent: %s', (_, state, before, during) => {
  const sending = progress(state, 300, true);
  expect(sending).toMatchObject({ delivery: during, deliveryBeforeSend: before, nextPollAt: null });
  expect(sending.deliveryUnknownReason).toBe(
    before.verdict === 'not-sent'
      ? 'the message is being sent, and the worker has not reported the result yet'
      : 'ECONNRESET. Reading the job for 2m showed no change that the message caused.',
  );
  // While the follow-up only waits for the send, nothing can have been sent.
  const waiting = progress(state, 300, false);
  expect(waiting).toMatchObject({ delivery: before });
  expect(waiting).not.toHaveProperty('deliveryBeforeSend');
});

it.each([
  ['before and while reading', unknown('completed'), 'ECONNRESET.'],
  [
    'after reading',
    needsDecision('completed'),
    'ECONNRESET. Reading the job for 2m showed no change that the message caused.',
  ],
  [
    'if no read can show whether the message arrived',
    needsDecision('active'),
    "ECONNRESET. Reading the job can't show whether the message arrived, because the job was not idle before the POST, or its state before the POST is not known.",
  ],
  ['unless the delivery is known', accepted('completed'), undefined],
])('the progress states why a delivery is unknown %s', (_, state, reason) => {
  expect(progress(state, 100, false).deliveryUnknownReason).toBe(reason);
});

it.each([
  ['nothing was read', unsent(), null],
  ['a send failed', afterSend(notRead(REFUSED)), 'ECONNREFUSED'],
  ['the job lock is held', afterSend(LOCK_HELD), 'waiting for the job lock, which another holds'],
  ['the job is active before the send', afterSend(notReady('active')), 'active'],
  ['the POST was rejected', afterSend(posted(REJECTED)), 'http 422'],
  ['the POST had no response', unknown('completed'), 'ECONNRESET'],
  [
    'a read followed the lost POST',
    afterReads(unknown('completed'), '130 completed'),
    'completed; must stay the same until 1970-01-01T00:02:40Z',
  ],
  ['the POST was accepted', accepted('completed'), 'active'],
  ['a read failed', afterReads(accepted('completed'), '110 active, 120 503'), 'http 503'],
  [
    'a terminal status is not fresh',
    afterReads(accepted('completed'), '110 completed'),
    'completed; not accepted before 1970-01-01T00:02:10Z',
  ],
  [
    'a terminal status must stay the same',
    afterReads(accepted('active'), '130 failed'),
    'failed; must stay the same until 1970-01-01T00:02:40Z',
  ],
  ['a terminal status is accepted', afterReads(accepted('completed'), '130 failed'), 'failed'],
  [
    'the delivery is assumed, and no run has read the job',
    play(unsentAfterReset({ onUnknownDelivery: 'assume-delivered' }), sendEnded(resetEnd(null)), RECONCILED),
    null,
  ],
])('lastResponseText describes the latest response if %s', (_, state, text) => {
  expect(lastResponseText(state)).toBe(text);
});

it('sentence adds a period unless the text ends with a punctuation mark', () => {
  const texts = ['http 503', 'http 503.', 'Is it down?', 'Down!', 'http 503. Try later'];
  expect(texts.map(sentence)).toEqual([
    'http 503.',
    'http 503.',
    'Is it down?',
    'Down!',
    'http 503. Try later.',
  ]);
});

it('isoSecond rounds a time up to the second', () => {
  expect([ms(130), ms(130) + 1].map((at) => isoSecond(at))).toEqual([
    '1970-01-01T00:02:10Z',
    '1970-01-01T00:02:11Z',
  ]);
});
