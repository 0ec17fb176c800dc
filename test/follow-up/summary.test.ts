import { expect, it } from '@jest/globals';
import { nextStep } from '../../src/follow-up/next-step';
import type { FollowUpState } from '../../src/follow-up/state';
import { activitySummary, waitSummary } from '../../src/follow-up/summary';
import {
  accepted,
  afterReads,
  afterSend,
  LIMITED,
  ms,
  needsDecision,
  notRead,
  notReady,
  play,
  posted,
  REFUSED,
  resendAllowed,
  sendEnded,
  unknown,
  unsent,
} from './states';

function step(state: FollowUpState, second: number) {
  return nextStep(state, ms(second), () => 0.5);
}

it.each([
  ['nothing was sent', afterSend(notRead(REFUSED)), 100, 'ECONNREFUSED; nothing sent yet; next try in 5s'],
  [
    'nothing was processed',
    afterSend(posted(LIMITED)),
    100,
    'http 429; nothing processed yet; next try in 5s',
  ],
  [
    'a resend waits',
    play(resendAllowed(), sendEnded(notRead(503), 300)),
    300,
    'http 503; delivery unknown; next try in 5s',
  ],
  ['the job is active', afterSend(notReady('active')), 100, 'waiting for the job: active, next read in 5s'],
  [
    'the delivery is unknown',
    unknown('completed'),
    100,
    'ECONNRESET; did the message arrive? next read in 30s',
  ],
  [
    'an operator must decide',
    needsDecision(),
    100,
    'did the message arrive? resolveDelivery decides; next read in 5s',
  ],
  ['the message was accepted', accepted('completed'), 100, 'sent: active, next read in 5s'],
  [
    'the job was read',
    afterReads(accepted('completed'), '130 active, 131 503'),
    131,
    'poll 2: http 503, next read in 5s',
  ],
])('the summary of a timer has the latest response and the wait, if %s', (_, state, second, summary) => {
  expect(waitSummary(state, step(state, second) as Parameters<typeof waitSummary>[1], ms(second))).toBe(
    summary,
  );
});

it.each([
  ['the first send', unsent(), 0, 'read the job, then send the message'],
  ['a further send', resendAllowed(), 300, 'read the job, then send the message (POST 2)'],
  ['a read while the job is not idle', afterSend(notReady('active')), 100, 'read the job until it is idle'],
  ['a read', afterReads(accepted('completed'), '130 active'), 130, 'poll 2'],
  [
    'a poll',
    afterReads(accepted('completed'), '130 active, 135 active'),
    135,
    'poll 3 and later ones, until active changes',
  ],
])('the summary of an activity: %s', (_, state, second, summary) => {
  expect(activitySummary(state, step(state, second))).toBe(summary);
});
