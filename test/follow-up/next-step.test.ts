import { expect, it } from '@jest/globals';
import { isDecisionNeeded, nextStep } from '../../src/follow-up/next-step';
import type { FollowUpState } from '../../src/follow-up/state';
import {
  accepted,
  afterReads,
  CANCELLED,
  DEADLINE,
  http,
  LIMITED,
  LOCK_HELD,
  LOST,
  ms,
  needsDecision,
  NOT_CONNECTED,
  NOT_DELIVERED,
  notRead,
  notReady,
  PLAN,
  play,
  pollEnded,
  posted,
  POSTPONED,
  readEnded,
  RECONCILED,
  REFUSED,
  REJECTED,
  resendAllowed,
  resetEnd,
  sendEnded,
  stepWords,
  unknown,
  unsent,
  unsentAfterReset,
} from './states';

/** The steps are in words, as `watching: read at 130`. Every time is in seconds since the start of the workflow. */
type Row = readonly [title: string, state: FollowUpState, second: number, step: string];

const COOLING_DOWN = { ...POSTPONED, retryAfterMs: ms(60) };
const CONFIGURATION_ERROR = { ...NOT_CONNECTED, label: 'ERR_INVALID_URL', isPermanent: true };

it.each<Row>([
  ['nothing was done yet', unsent(), 0, 'starting: send at 0 with the first permit'],
  [
    'after a reset too: the activity finds out',
    unsentAfterReset(),
    0,
    'starting: send at 0 with the first permit',
  ],
  [
    'the agent service is unreachable',
    play(unsent(), sendEnded(notRead(REFUSED))),
    100,
    'starting: send at 105 with the first permit',
  ],
  [
    'the wait after a failure is over',
    play(unsent(), sendEnded(notRead(REFUSED))),
    106,
    'starting: send at 106 with the first permit',
  ],
  [
    'the first read received 503',
    play(unsent(), sendEnded(notRead(503))),
    100,
    'starting: send at 105 with the first permit',
  ],
  [
    'the key was rejected with 401',
    play(unsent(), sendEnded(notRead(401))),
    100,
    'unauthorized: send at 105 with the first permit',
  ],
  [
    'the project cools down',
    play(unsent(), sendEnded(COOLING_DOWN)),
    100,
    'starting: send at 160 with the first permit',
  ],
  ['there is no such job', play(unsent(), sendEnded(notRead(404))), 100, 'failed: JobNotFound'],
  ['the first read received 403', play(unsent(), sendEnded(notRead(403))), 100, 'failed: FollowUpRejected'],
  ['the first read received 400', play(unsent(), sendEnded(notRead(400))), 100, 'failed: FollowUpRejected'],
  [
    'the first read is impossible',
    play(unsent(), sendEnded(notRead({ ...REFUSED, isPermanent: true }))),
    100,
    'failed: FollowUpRejected',
  ],
  ['it is the deadline', unsent(), DEADLINE, 'failed: DeadlineExceeded'],
])('starting: %s', (_, state, second, step) => {
  expect(stepWords(state, second)).toBe(step);
});

const WAITING = play(unsent(), sendEnded(notReady('active')));

it.each<Row>([
  [
    'another follow-up holds the job lock',
    play(unsent(), sendEnded(LOCK_HELD)),
    100,
    'waiting-for-job: wait until another ends',
  ],
  [
    'the wait for the job lock ended',
    play(unsent(), sendEnded(LOCK_HELD), { kind: 'lock wait ended', lockRunId: 'lock-1' }),
    200,
    'starting: send at 200 with the first permit',
  ],
  ['the job is active', WAITING, 100, 'waiting-for-job: read at 105'],
  [
    'the interval grows with the wait',
    afterReads(WAITING, '200 active'),
    200,
    'waiting-for-job: read at 210',
  ],
  [
    'two single reads are over',
    afterReads(WAITING, '105 active, 110 active'),
    110,
    'waiting-for-job: poll active from 115 to 3600',
  ],
  [
    'the poll found another status',
    play(WAITING, pollEnded('active', 5, 200, 'paused')),
    200,
    'waiting-for-job: poll paused from 210 to 3600',
  ],
  [
    'a read failed',
    afterReads(WAITING, '105 active, 110 active, 120 503'),
    120,
    'waiting-for-job: read at 125',
  ],
  ['a read was rejected with 403', afterReads(WAITING, '105 403'), 105, 'unauthorized: read at 110'],
  ['a read received 404', afterReads(WAITING, '105 404'), 105, 'waiting-for-job: read at 110'],
  [
    'the job no longer exists',
    afterReads(WAITING, '105 404, 110 404, 115 404, 125 404, 135 404'),
    135,
    'failed: JobNotFound',
  ],
  [
    'an operator requested a read',
    play(WAITING, { kind: 'read requested', at: ms(102) }),
    102,
    'waiting-for-job: read at 102',
  ],
  [
    'the last read before the deadline',
    afterReads(WAITING, '105 active, 110 active, 3598 active'),
    3_598,
    'waiting-for-job: read at 3600',
  ],
  [
    'the job is idle',
    afterReads(WAITING, '105 completed'),
    105,
    'sending: send at 105 with the first permit',
  ],
  [
    'the poll found an idle job',
    play(WAITING, pollEnded('active', 5, 200, 'failed')),
    200,
    'sending: send at 200 with the first permit',
  ],
  [
    'whenActive is reject',
    play(unsent({ whenActive: 'reject' }), sendEnded(notReady('active'))),
    100,
    'failed: FollowUpRejected',
  ],
  ['it is the deadline', WAITING, DEADLINE, 'failed: DeadlineExceeded'],
  [
    'it is the deadline, and the job became idle',
    afterReads(WAITING, '3600 completed'),
    DEADLINE,
    'failed: DeadlineExceeded',
  ],
  [
    'it is the deadline, and the lock is held',
    play(unsent(), sendEnded(LOCK_HELD)),
    DEADLINE,
    'failed: DeadlineExceeded',
  ],
])('waiting-for-job: %s', (_, state, second, step) => {
  expect(stepWords(state, second)).toBe(step);
});

const LIMITED_POST = play(unsent(), sendEnded(posted(LIMITED)));
const WAIT_ASKED = { ...LIMITED, retryAfterMs: ms(60) };

it.each<Row>([
  ['the POST received 429', LIMITED_POST, 100, 'sending: send at 105 with the first permit'],
  [
    'the POST received 429 with Retry-After',
    play(unsent(), sendEnded(posted(WAIT_ASKED))),
    100,
    'sending: send at 160 with the first permit',
  ],
  [
    'the POST received 401',
    play(unsent(), sendEnded(posted({ ...LIMITED, ...http(401) }))),
    100,
    'unauthorized: send at 105 with the first permit',
  ],
  [
    'there was no connection',
    play(unsent(), sendEnded(posted(NOT_CONNECTED))),
    100,
    'sending: send at 105 with the first permit',
  ],
  [
    'the wait would end after the deadline',
    play(LIMITED_POST, sendEnded(posted(WAIT_ASKED), 3_590)),
    3_590,
    'sending: send at 3600 with the first permit',
  ],
  [
    'the POST is impossible',
    play(unsent(), sendEnded(posted(CONFIGURATION_ERROR))),
    100,
    'failed: FollowUpRejected',
  ],
  [
    'the baseline read was rejected later',
    play(LIMITED_POST, sendEnded(notRead(403), 200)),
    200,
    'unauthorized: send at 207.5 with the first permit',
  ],
  ['the POST was rejected', play(unsent(), sendEnded(posted(REJECTED))), 100, 'failed: FollowUpRejected'],
  ['it is the deadline', LIMITED_POST, DEADLINE, 'failed: DeadlineExceeded'],
])('sending: %s', (_, state, second, step) => {
  expect(stepWords(state, second)).toBe(step);
});

// The POST ended at 100 s without a response, and reconcileTimeout is 120 s.
it.each<Row>([
  ['the first read comes when it can be fresh', unknown('completed'), 100, 'reconciling: read at 130'],
  ['the job was active before the POST', unknown('active'), 100, 'reconciling: conclude'],
  ['the job before the POST is not known', unknown(null), 100, 'reconciling: conclude'],
  [
    'after a reset',
    play(unsentAfterReset(), sendEnded(resetEnd('completed'))),
    100,
    'reconciling: read at 170',
  ],
  [
    'the first fresh read failed',
    afterReads(unknown('completed'), '130 503'),
    130,
    'reconciling: read at 135',
  ],
  [
    'a fresh read showed nothing',
    afterReads(unknown('completed'), '130 completed'),
    130,
    'reconciling: read at 135',
  ],
  [
    'two fresh reads showed nothing',
    afterReads(unknown('completed'), '130 completed, 135 completed'),
    135,
    'reconciling: poll completed from 140 to 220',
  ],
  [
    'the last read comes when reconcileTimeout is over',
    afterReads(unknown('completed'), '130 completed, 216 completed'),
    216,
    'reconciling: read at 220',
  ],
  [
    'a read was rejected with 401',
    afterReads(unknown('completed'), '130 401'),
    130,
    'unauthorized: read at 135',
  ],
  [
    'reconcileTimeout is over',
    afterReads(unknown('completed'), '130 completed, 220 completed'),
    220,
    'reconciling: conclude',
  ],
  [
    'reconcileTimeout is over, and the last read failed',
    afterReads(unknown('completed'), '130 completed, 220 503'),
    220,
    'reconciling: conclude',
  ],
  [
    'reconcileTimeout is over, and no fresh response came',
    afterReads(unknown('completed'), '130 503, 220 503'),
    220,
    'reconciling: read at 227.5',
  ],
  [
    'reconcileTimeout is shorter than maxStaleness',
    afterReads(unknown('completed', { reconcileTimeoutMs: 0 }), '130 completed'),
    130,
    'reconciling: conclude',
  ],
  [
    'the job no longer exists',
    afterReads(unknown('completed'), '130 404, 135 404, 140 404, 145 404, 160 404'),
    160,
    'failed: JobNotFound',
  ],
  [
    'five times 404 before a read can be fresh',
    afterReads(unknown('completed'), '100 404, 101 404, 102 404, 103 404, 129 404'),
    129,
    'reconciling: read at 134',
  ],
  [
    'a fresh read showed the turn',
    afterReads(unknown('completed'), '130 active'),
    130,
    'watching: read at 135',
  ],
  ['it is the deadline', unknown('completed'), DEADLINE, 'failed: DeadlineExceeded'],
])('reconciling: %s', (_, state, second, step) => {
  expect(stepWords(state, second)).toBe(step);
});

const REJECT_RESEND = play(
  unknown('active', { onUnknownDelivery: 'resend', whenActive: 'reject' }),
  RECONCILED,
);
const concluded = (onUnknownDelivery: typeof PLAN.onUnknownDelivery, baseline = 'completed') =>
  play(unknown(baseline, { onUnknownDelivery }), RECONCILED);

it.each<Row>([
  ['fail', concluded('fail'), 220, 'failed: DeliveryUnknown'],
  ['assume-delivered', concluded('assume-delivered'), 220, 'watching: read at 220'],
  ['resend', concluded('resend'), 220, 'sending: send at 220 with the resend permit'],
  ['ask', concluded('ask'), 220, 'needs-decision: read at 220'],
  [
    'resend, and its POST received 429',
    play(resendAllowed(), sendEnded(posted(LIMITED), 230)),
    230,
    'sending: send at 235 with the resend permit',
  ],
  [
    'resend, and the job is active',
    play(resendAllowed('active'), sendEnded(notReady('active'), 230)),
    230,
    'waiting-for-job: read at 235',
  ],
  [
    'resend, and whenActive is reject',
    play(REJECT_RESEND, sendEnded(notReady('active'), 230)),
    230,
    'failed: DeliveryUnknown',
  ],
  [
    'resend, and the baseline read shows the turn',
    play(resendAllowed(), sendEnded(notReady('active'), 230)),
    230,
    'watching: read at 243.05',
  ],
  [
    'resend, and its POST was rejected',
    play(resendAllowed(), sendEnded(posted(REJECTED), 230)),
    230,
    'failed: DeliveryUnknown',
  ],
  [
    'resend, and its POST is impossible',
    play(resendAllowed(), sendEnded(posted(CONFIGURATION_ERROR), 230)),
    230,
    'failed: DeliveryUnknown',
  ],
  [
    'resend, and its delivery is unknown',
    play(resendAllowed(), sendEnded(posted(LOST), 230)),
    230,
    'reconciling: read at 260',
  ],
  [
    'resend, and its delivery stays unknown',
    play(resendAllowed(), sendEnded(posted(LOST), 230), RECONCILED),
    400,
    'failed: DeliveryUnknown',
  ],
  [
    'resend, and the job no longer exists',
    afterReads(
      play(resendAllowed(), sendEnded(notReady('paused'), 230)),
      '235 404, 240 404, 245 404, 250 404, 265 404',
    ),
    265,
    'failed: JobNotFound',
  ],
  ['resend, and it is the deadline', concluded('resend'), DEADLINE, 'failed: DeadlineExceeded'],
])('an unknown delivery with onUnknownDelivery: %s', (_, state, second, step) => {
  expect(stepWords(state, second)).toBe(step);
});

it.each<Row>([
  ['reads the job meanwhile', needsDecision(), 100, 'needs-decision: read at 105'],
  [
    'polls after two single reads',
    afterReads(needsDecision(), '110 active, 115 active'),
    115,
    'needs-decision: poll active from 120 to 3600',
  ],
  ['continues after a failure', afterReads(needsDecision(), '110 503'), 110, 'needs-decision: read at 115'],
  [
    'keeps its phase when the key is rejected, so that lists still find it',
    afterReads(needsDecision(), '110 403'),
    110,
    'needs-decision: read at 115',
  ],
  [
    'ends without the job',
    afterReads(needsDecision(), '130 404, 140 404, 150 404, 160 404, 170 404'),
    170,
    'failed: JobNotFound',
  ],
  [
    'ends by itself if a read shows the turn',
    afterReads(needsDecision('completed'), '400 active'),
    400,
    'watching: read at 430.05',
  ],
  [
    'ends with the decision not-delivered',
    play(needsDecision(), NOT_DELIVERED),
    400,
    'sending: send at 400 with the operator permit',
  ],
  ['ends with the deadline', needsDecision(), DEADLINE, 'failed: DeadlineExceeded'],
])('needs-decision: %s', (_, state, second, step) => {
  expect(stepWords(state, second)).toBe(step);
});

it('a decision is needed only while the delivery is unknown, reconciled, and without a permit', () => {
  const rows = [
    needsDecision(),
    play(needsDecision(), NOT_DELIVERED),
    unknown('completed'),
    concluded('fail'),
    unsent(),
  ];
  expect(rows.map((state) => isDecisionNeeded(state))).toEqual([true, false, false, false, false]);
});

// The POST ended at 100 s, so that a read is fresh from 130 s on.
it.each<Row>([
  ['a read can show the turn of an idle job at once', accepted('completed'), 100, 'watching: read at 105'],
  [
    'the first fresh read comes in time',
    afterReads(accepted('completed'), '126 paused'),
    126,
    'watching: read at 130',
  ],
  [
    'a fresh read returned active',
    afterReads(accepted('completed'), '130 active'),
    130,
    'watching: read at 135',
  ],
  [
    'the interval grows with the age of the turn',
    afterReads(accepted('completed'), '130 active, 300 active'),
    300,
    'watching: poll active from 320.05 to 3600',
  ],
  [
    'the interval has a maximum',
    afterReads(accepted('completed', { deadlineMs: ms(90_000) }), '130 active, 80000 active'),
    80_000,
    'watching: poll active from 80300 to 90000',
  ],
  [
    'a poll ended because its time was over',
    play(afterReads(accepted('completed'), '130 active, 135 active'), pollEnded('active', 5, 300)),
    300,
    'watching: poll active from 320.05 to 3600',
  ],
  [
    'a status that is unknown to the worker',
    afterReads(accepted('completed'), '130 paused, 135 paused'),
    135,
    'watching: poll paused from 140 to 3600',
  ],
  [
    'a read failed',
    afterReads(accepted('completed'), '130 active, 135 503, 140 503'),
    140,
    'watching: read at 147.5',
  ],
  [
    'a read received 429 with Retry-After',
    play(accepted('completed'), readEnded({ ...http(429), retryAfterMs: ms(60) }, 130)),
    130,
    'watching: read at 190',
  ],
  [
    'a read was rejected with 401',
    afterReads(accepted('completed'), '130 401'),
    130,
    'unauthorized: read at 135',
  ],
  ['a read received 404', afterReads(accepted('completed'), '130 404'), 130, 'watching: read at 135'],
  [
    'the job no longer exists',
    afterReads(accepted('completed'), '130 404, 140 404, 150 404, 155 404, 160 404'),
    160,
    'failed: JobNotFound',
  ],
  [
    'five times 404 in less than maxStaleness',
    afterReads(accepted('completed'), '130 404, 140 404, 150 404, 155 404, 159 404'),
    159,
    'watching: read at 164',
  ],
  [
    'five times 404, but the latest is not fresh',
    afterReads(accepted('completed'), '100 404, 101 404, 102 404, 103 404, 129 404'),
    129,
    'watching: read at 134',
  ],
  [
    'an operator requested a read',
    play(afterReads(accepted('completed'), '130 active, 135 active'), {
      kind: 'read requested',
      at: ms(136),
    }),
    136,
    'watching: read at 136',
  ],
  [
    'it is almost the deadline',
    afterReads(accepted('completed'), '130 active, 135 active, 3590 active'),
    3_590,
    'watching: read at 3600',
  ],
  [
    'it is the deadline: a last read',
    afterReads(accepted('completed'), '130 active, 3599 active'),
    DEADLINE,
    'watching: read at 3600',
  ],
  [
    'it is the deadline, and the last read failed',
    afterReads(accepted('completed'), '130 active, 3600 503'),
    DEADLINE,
    'failed: DeadlineExceeded',
  ],
  [
    'it is the deadline, and the last read returned active',
    afterReads(accepted('completed'), '130 active, 3600 active'),
    DEADLINE,
    'failed: DeadlineExceeded',
  ],
  [
    'it is the deadline, and the last read is accepted',
    afterReads(accepted('completed'), '130 active, 3600 failed'),
    DEADLINE,
    'done: failed, seen-active',
  ],
])('watching: %s', (_, state, second, step) => {
  expect(stepWords(state, second)).toBe(step);
});

it.each<Row>([
  [
    'a terminal status before a read can be fresh',
    afterReads(accepted('completed'), '105 completed'),
    105,
    'confirming: read at 110',
  ],
  [
    'a turn was seen, and its end is not fresh',
    afterReads(accepted('completed'), '105 active, 110 completed'),
    110,
    'confirming: read at 130',
  ],
  [
    'the status must stay the same',
    afterReads(accepted('completed'), '130 completed'),
    130,
    'confirming: read at 160',
  ],
  [
    'a read in between changes nothing',
    afterReads(accepted('completed'), '130 completed, 145 completed'),
    145,
    'confirming: read at 160',
  ],
  [
    'the read at the end of this time failed',
    afterReads(accepted('completed'), '130 completed, 160 503'),
    160,
    'confirming: read at 165',
  ],
  [
    'a key was rejected',
    afterReads(accepted('completed'), '130 completed, 160 403'),
    160,
    'unauthorized: read at 165',
  ],
  [
    'the job is active again',
    afterReads(accepted('active'), '130 completed, 160 active'),
    160,
    'watching: poll active from 166.05 to 3600',
  ],
  [
    'the deadline is earlier than the end of this time',
    afterReads(accepted('completed'), '130 active, 3590 paused, 3595 archived'),
    3_595,
    'done: archived, seen-active',
  ],
  [
    'it is the deadline: a last read',
    afterReads(accepted('active'), '130 active, 3590 failed'),
    3_590,
    'confirming: read at 3600',
  ],
  [
    'it is the deadline, and the status is not accepted',
    afterReads(accepted('active'), '130 active, 3590 failed, 3600 failed'),
    DEADLINE,
    'failed: DeadlineExceeded',
  ],
])('confirming: %s', (_, state, second, step) => {
  expect(stepWords(state, second)).toBe(step);
});

const DONE = afterReads(accepted('completed'), '110 active, 130 completed');

// The prLinkTimeout is 20 s.
it.each<Row>([
  ['a completed job has no link', DONE, 130, 'waiting-for-link: poll completed from 135 to 150'],
  [
    'the first reads are single reads',
    afterReads(accepted('failed'), '130 completed'),
    130,
    'waiting-for-link: read at 135',
  ],
  [
    'the last read comes when prLinkTimeout is over',
    afterReads(DONE, '146 completed'),
    146,
    'waiting-for-link: read at 150',
  ],
  ['the last read failed', afterReads(DONE, '150 503'), 150, 'waiting-for-link: read at 155'],
  ['the key was rejected', afterReads(DONE, '135 401'), 135, 'unauthorized: read at 140'],
  [
    'an operator requested a read',
    play(DONE, { kind: 'read requested', at: ms(131) }),
    131,
    'waiting-for-link: read at 131',
  ],
  ['the link is there', afterReads(DONE, '135 completed+link'), 135, 'done: completed, seen-active'],
  ['prLinkTimeout is over', afterReads(DONE, '150 completed'), 150, 'done: completed, seen-active'],
  ['the job is active again', afterReads(DONE, '135 active'), 135, 'watching: poll active from 140 to 3600'],
  [
    'a failed job has no link',
    afterReads(accepted('completed'), '130 failed'),
    130,
    'done: failed, status-changed',
  ],
  ['it is the deadline', DONE, DEADLINE, 'done: completed, seen-active'],
])('waiting-for-link: %s', (_, state, second, step) => {
  expect(stepWords(state, second)).toBe(step);
});

// A read is made only if it can decide something (rule 4 of the contract). The POST ended at 100 s.
it.each<Row>([
  ['the job was idle: a read can show the turn', accepted('completed'), 100, 'watching: read at 105'],
  [
    'the turn was seen: the next read is the first fresh one',
    afterReads(accepted('completed'), '105 active'),
    105,
    'watching: read at 130',
  ],
  [
    'the job was active: the next read is the first fresh one',
    accepted('active'),
    100,
    'watching: read at 130',
  ],
  [
    'the job is not known: the next read is the first fresh one',
    accepted(null),
    100,
    'watching: read at 130',
  ],
  [
    'an unknown delivery: the next read is the first fresh one',
    unknown('completed'),
    100,
    'reconciling: read at 130',
  ],
  ['an unknown delivery that no read can show: no read', unknown('active'), 100, 'reconciling: conclude'],
  [
    'the status must stay the same: the next read is at the end of that time',
    afterReads(accepted('active'), '130 completed'),
    130,
    'confirming: read at 160',
  ],
  [
    'a failure before a read can be fresh: the next read is the first fresh one',
    afterReads(accepted('active'), '105 503'),
    105,
    'watching: read at 130',
  ],
  [
    'a long wait after a failure: no read before its end',
    play(accepted('active'), readEnded({ ...http(429), retryAfterMs: ms(90) }, 105)),
    105,
    'watching: read at 195',
  ],
  [
    'an operator requested a read: the read is made at once',
    play(accepted('active'), { kind: 'read requested', at: ms(103) }),
    103,
    'watching: read at 103',
  ],
  [
    'the first fresh read is later than the deadline: the last read',
    accepted('active', { deadlineMs: ms(110) }),
    100,
    'watching: read at 110',
  ],
])('a read is made only if it can decide something: %s', (_, state, second, step) => {
  expect(stepWords(state, second)).toBe(step);
});

const UNCHANGED = '130 active, 135 active, 140 active, 145 active';
const many = (from: number, reads: number) =>
  Array.from({ length: reads }, (_, index) => `${from + index} active`).join(', ');
const withReads = (timerPolls: number | 'all') => ({ polling: { ...PLAN.polling, timerPolls } });

it.each<Row>([
  ['2 single reads', afterReads(accepted('completed'), '130 active'), 130, 'watching: read at 135'],
  [
    '2 single reads, which are over',
    afterReads(accepted('completed'), '130 active, 135 active'),
    135,
    'watching: poll active from 140 to 3600',
  ],
  [
    'no single reads',
    afterReads(accepted('completed', withReads(0)), '130 active'),
    130,
    'watching: poll active from 135 to 3600',
  ],
  [
    'no single reads, and nothing was read',
    accepted('completed', withReads(0)),
    100,
    'watching: read at 105',
  ],
  [
    '5 single reads',
    afterReads(accepted('completed', withReads(5)), UNCHANGED),
    145,
    'watching: read at 150',
  ],
  [
    'every read',
    afterReads(accepted('completed', withReads('all')), many(130, 300)),
    429,
    'watching: read at 461.95',
  ],
  [
    'every read, but 200 at most before the delivery',
    afterReads(needsDecisionOf('all'), many(130, 200)),
    329,
    'needs-decision: poll active from 351.95 to 3600',
  ],
  [
    'every read, before the 200th',
    afterReads(needsDecisionOf('all'), many(130, 199)),
    328,
    'needs-decision: read at 350.85',
  ],
  [
    'every read while waiting for the job, but 200 at most',
    afterReads(play(unsent(withReads('all')), sendEnded(notReady('active'))), many(101, 200)),
    300,
    'waiting-for-job: poll active from 320 to 3600',
  ],
])('with timerPolls, single reads come before a poll: %s', (_, state, second, step) => {
  expect(stepWords(state, second)).toBe(step);
});

function needsDecisionOf(timerPolls: 'all'): FollowUpState {
  return play(unknown('active', { onUnknownDelivery: 'ask', ...withReads(timerPolls) }), RECONCILED);
}

it('a poll knows the job by its latest response, and the start of the turn or of the wait', () => {
  const watching = nextStep(afterReads(accepted('completed'), '130 active, 135 paused'), ms(135), () => 0);
  expect(watching).toMatchObject({ do: 'poll', known: { status: 'paused' }, since: ms(99.5) });
  const waiting = nextStep(afterReads(WAITING, '105 active, 110 active'), ms(110), () => 0);
  expect(waiting).toMatchObject({ do: 'poll', known: { status: 'active' }, since: ms(100) });
});

it('a further POST has the job before the earlier one only if its read is fresh for the earlier one', () => {
  const baselineAt = (second: number) => {
    const step = nextStep(resendAllowed(), ms(second), () => 0);
    return step.do === 'send' ? step.earlierBaseline : step;
  };
  expect(baselineAt(129)).toBeNull();
  expect(baselineAt(130)).toEqual({ status: 'completed', prLink: null, archivedAt: null });
  expect(nextStep(unsent(), 0, () => 0)).toMatchObject({ earlierBaseline: null });
});

it.each([
  ['unsent', unsent()],
  ['waiting for the job', WAITING],
  ['unknown', unknown('completed')],
  ['needs-decision', needsDecision()],
  ['allowed to resend', resendAllowed()],
  ['accepted', accepted('completed')],
  ['done', afterReads(accepted('completed'), '130 failed')],
  ['rejected', play(unsent(), sendEnded(posted(REJECTED)))],
])('a cancelled follow-up ends at once: %s', (_, state) => {
  for (const second of [100, DEADLINE + 1])
    expect(stepWords(play(state, CANCELLED), second)).toBe('cancelled');
});

it.each([
  ['FollowUpRejected', play(unsent(), sendEnded(posted(REJECTED))), 'http 422.', 422],
  [
    'FollowUpRejected',
    play(unsent({ whenActive: 'reject' }), sendEnded(notReady('paused'))),
    'The job is paused, and whenActive is reject.',
    undefined,
  ],
  [
    'JobNotFound',
    play(unsent(), sendEnded(notRead(404))),
    'The agent service has no such job: http 404.',
    404,
  ],
  [
    'DeliveryUnknown',
    concluded('fail'),
    'ECONNRESET. Reading the job for 2m showed no change that the message caused.',
    undefined,
  ],
  [
    'DeliveryUnknown',
    concluded('fail', 'active'),
    "ECONNRESET. Reading the job can't show whether it arrived, because the job was active before the POST or is not known.",
    undefined,
  ],
  [
    'DeadlineExceeded',
    play(unsent(), sendEnded(notRead(REFUSED))),
    'The deadline passed. The last status of the job was: never read. The last response was: ECONNREFUSED.',
    undefined,
  ],
  [
    'DeadlineExceeded',
    afterReads(WAITING, '3600 active'),
    'The deadline passed. The last status of the job was: active. The last response was: active.',
    undefined,
  ],
])('a follow-up that fails as %s states the reason', (type, state, reason, httpStatus) => {
  const second = type === 'DeadlineExceeded' ? DEADLINE : 300;
  expect(nextStep(state, ms(second), () => 0)).toMatchObject({
    outcome: { kind: 'failure', type, reason, ...(httpStatus !== undefined && { cause: { httpStatus } }) },
  });
});
