import { expect, it } from '@jest/globals';
import { nextStep } from '../../src/follow-up/next-step';
import { type FollowUpState, isDecisionNeeded } from '../../src/follow-up/state';
import {
  accepted,
  afterReads,
  afterResend,
  afterSend,
  CANCELLED,
  DEADLINE,
  httpFailure,
  RATE_LIMITED,
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
  readRequested,
  RECONCILED,
  REFUSED,
  REJECTED,
  resendAllowed,
  resetEnd,
  sendEnded,
  describeStep,
  unknown,
  unsent,
  unsentAfterReset,
} from './states';

/**
 * `when` describes the reads after the state, and then the time of the decision, for example `130 active @136` (see `reads`). Without a
 * time, the step is decided when the latest read or send has ended. `step` describes the expected step, for example
 * `watching: read at 130`. The phase is omitted if it is the phase of the table. Every time is in seconds since the workflow's start.
 */
type Row = readonly [title: string, state: FollowUpState, when: string, step: string];

function expectStep(state: FollowUpState, when: string, phase: string | null, step: string, options = {}) {
  const [description = '', time] = when.split('@');
  const after = afterReads(state, description.trim());
  const second = time === undefined ? after.lastResponseAt / 1_000 : Number(time);
  const decided = describeStep(after, second, options);
  expect(decided.replace(`${phase}: `, '')).toBe(step);
}

const COOLING_DOWN = { ...POSTPONED, retryAfterMs: ms(60) };
/** The agent service returned 403 with `Retry-After`. */
const LIMITED_READ = httpFailure(403, { isRateLimit: true, retryAfterMs: ms(60) });
const CONFIGURATION_ERROR = { ...NOT_CONNECTED, label: 'ERR_INVALID_URL', isPermanent: true };

it.each<Row>([
  ['the follow-up has done nothing yet', unsent(), '@0', 'send at 0, first permit'],
  [
    'a reset made the run, which only the activity detects',
    unsentAfterReset(),
    '@0',
    'send at 0, first permit',
  ],
  ['the agent service is unreachable', afterSend(notRead(REFUSED)), '', 'send at 105, first permit'],
  ['the wait after a failure is over', afterSend(notRead(REFUSED)), '@106', 'send at 106, first permit'],
  ['the first read received 503', afterSend(notRead(503)), '', 'send at 105, first permit'],
  ['the key was rejected with 401', afterSend(notRead(401)), '', 'unauthorized: send at 105, first permit'],
  ['the project cools down', afterSend(COOLING_DOWN), '', 'send at 160, first permit'],
  ['the first read received 404', afterSend(notRead(404)), '', 'failed: JobNotFound'],
  ['the first read received 403', afterSend(notRead(403)), '', 'failed: FollowUpRejected'],
  ['the first read met a rate limit', afterSend(notRead(LIMITED_READ)), '', 'send at 160, first permit'],
  [
    'the first read met a rate limit, and Retry-After had no valid wait',
    afterSend(notRead({ ...LIMITED_READ, retryAfterMs: undefined })),
    '',
    'send at 105, first permit',
  ],
  ['the first read received 400', afterSend(notRead(400)), '', 'failed: FollowUpRejected'],
  [
    'whenActive is reject, and the job was not read yet',
    unsent({ whenActive: 'reject' }),
    '@0',
    'send at 0, first permit',
  ],
  // The run before the reset ended at this point too, and the replay of its history must make the same decision.
  [
    'a reset made the run, and the first read before the reset received 404',
    play(unsentAfterReset(), sendEnded(notRead(404))),
    '',
    'failed: JobNotFound',
  ],
  [
    'an operator permitted a POST after a reset, and the first read of this run received 404',
    play(
      unsentAfterReset({ onUnknownDelivery: 'ask' }),
      ...[sendEnded(resetEnd(null)), RECONCILED, NOT_DELIVERED, sendEnded(notRead(404), 300)],
    ),
    '',
    'send at 305, operator permit',
  ],
  ['the deadline has passed', unsent(), '@3600', 'failed: DeadlineExceeded'],
])('starting: %s', (_, state, when, step) => {
  expectStep(state, when, 'starting', step);
});

const WAITING = afterSend(notReady('active'));

it.each<Row>([
  ['another follow-up holds the job lock', afterSend(LOCK_HELD), '', 'wait until another ends'],
  [
    'the wait for the job lock ended',
    play(afterSend(LOCK_HELD), { kind: 'lock wait ended', lockRunId: 'lock-1' }),
    '@200',
    'starting: send at 200, first permit',
  ],
  ['the job is active', WAITING, '', 'read at 105'],
  ['the interval grows with the wait', WAITING, '200 active', 'read at 210'],
  ['two single reads were made', WAITING, '105 active, 110 active', 'poll active from 115 to 3600'],
  [
    'the poll found another status',
    play(WAITING, pollEnded('active', 5, 200, 'paused')),
    '@200',
    'poll paused from 210 to 3600',
  ],
  ['a read failed', WAITING, '105 active, 110 active, 120 503', 'read at 125'],
  ['a read was rejected with 403', WAITING, '105 403', 'unauthorized: read at 110'],
  ['a read received 404', WAITING, '105 404', 'read at 110'],
  ['the job no longer exists', WAITING, '105 404, 110 404, 115 404, 125 404, 135 404', 'failed: JobNotFound'],
  ['an operator requested a read', play(WAITING, readRequested(102)), '@102', 'read at 102'],
  ['the last read before the deadline', WAITING, '105 active, 110 active, 3598 active', 'read at 3600'],
  ['the job is idle', WAITING, '105 completed', 'sending: send at 105, first permit'],
  [
    'the poll found an idle job',
    play(WAITING, pollEnded('active', 5, 200, 'failed')),
    '@200',
    'sending: send at 200, first permit',
  ],
  [
    'whenActive is reject',
    afterSend(notReady('active'), { whenActive: 'reject' }),
    '',
    'failed: FollowUpRejected',
  ],
  ['the deadline has passed', WAITING, '@3600', 'failed: DeadlineExceeded'],
  ['the deadline has passed, and the job became idle', WAITING, '3600 completed', 'failed: DeadlineExceeded'],
  [
    'the deadline has passed, and the lock is held',
    afterSend(LOCK_HELD),
    '@3600',
    'failed: DeadlineExceeded',
  ],
])('waiting-for-job: %s', (_, state, when, step) => {
  expectStep(state, when, 'waiting-for-job', step);
});

const LIMITED_POST = afterSend(posted(RATE_LIMITED));
const RETRY_AFTER_60_S = { ...RATE_LIMITED, retryAfterMs: ms(60) };

it.each<Row>([
  ['the POST received 429', LIMITED_POST, '', 'send at 105, first permit'],
  [
    'the POST received 429 with Retry-After',
    afterSend(posted(RETRY_AFTER_60_S)),
    '',
    'send at 160, first permit',
  ],
  [
    'the POST received 401',
    afterSend(posted({ ...RATE_LIMITED, ...httpFailure(401) })),
    '',
    'unauthorized: send at 105, first permit',
  ],
  ['the POST had no connection', afterSend(posted(NOT_CONNECTED)), '', 'send at 105, first permit'],
  [
    'the wait would end after the deadline',
    play(LIMITED_POST, sendEnded(posted(RETRY_AFTER_60_S), 3_590)),
    '@3590',
    'send at 3600, first permit',
  ],
  ['the POST is impossible', afterSend(posted(CONFIGURATION_ERROR)), '', 'failed: FollowUpRejected'],
  [
    'a later baseline read was rejected with 403',
    play(LIMITED_POST, sendEnded(notRead(403), 200)),
    '@200',
    'unauthorized: send at 207.5, first permit',
  ],
  ['the POST was rejected', afterSend(posted(REJECTED)), '', 'failed: FollowUpRejected'],
  ['the deadline has passed', LIMITED_POST, '@3600', 'failed: DeadlineExceeded'],
])('sending: %s', (_, state, when, step) => {
  expectStep(state, when, 'sending', step);
});

// The POST ended at 100 s without a response, and reconcileTimeout is 120 s.
it.each<Row>([
  ['the first read is made when a read can be fresh', unknown('completed'), '', 'read at 130'],
  ['the job was active before the POST', unknown('active'), '', 'conclude'],
  ['the baseline is not known', unknown(null), '', 'conclude'],
  ['after a reset', play(unsentAfterReset(), sendEnded(resetEnd('completed'))), '', 'read at 170'],
  ['the first fresh read failed', unknown('completed'), '130 503', 'read at 135'],
  ['a fresh read showed nothing', unknown('completed'), '130 completed', 'read at 135'],
  [
    'two fresh reads showed nothing',
    unknown('completed'),
    '130 completed, 135 completed',
    'poll completed from 140 to 220',
  ],
  [
    'the last read is made when reconcileTimeout is over',
    unknown('completed'),
    '130 completed, 216 completed',
    'read at 220',
  ],
  ['a read was rejected with 401', unknown('completed'), '130 401', 'unauthorized: read at 135'],
  ['reconcileTimeout is over', unknown('completed'), '130 completed, 220 completed', 'conclude'],
  [
    'reconcileTimeout is over, and the last read failed',
    unknown('completed'),
    '130 completed, 220 503',
    'conclude',
  ],
  [
    'reconcileTimeout is over, and no fresh response was received',
    unknown('completed'),
    '130 503, 220 503',
    'read at 227.5',
  ],
  [
    'reconcileTimeout is shorter than maxStaleness',
    unknown('completed', { reconcileTimeoutMs: 0 }),
    '130 completed',
    'conclude',
  ],
  [
    'the job no longer exists',
    unknown('completed'),
    '130 404, 135 404, 140 404, 145 404, 160 404',
    'failed: JobNotFound',
  ],
  [
    'five 404s before a read can be fresh',
    unknown('completed'),
    '100 404, 101 404, 102 404, 103 404, 129 404',
    'read at 134',
  ],
  ['a fresh read showed the turn', unknown('completed'), '130 active', 'watching: read at 135'],
  ['the deadline has passed', unknown('completed'), '@3600', 'failed: DeadlineExceeded'],
  [
    'the deadline and reconcileTimeout have passed',
    unknown('completed'),
    '130 completed, 3600 completed',
    'failed: DeadlineExceeded',
  ],
])('reconciling: %s', (_, state, when, step) => {
  expectStep(state, when, 'reconciling', step);
});

const REJECT_RESEND = play(
  unknown('active', { onUnknownDelivery: 'resend', whenActive: 'reject' }),
  RECONCILED,
);
const concluded = (onUnknownDelivery: typeof PLAN.onUnknownDelivery, baseline = 'completed') =>
  play(unknown(baseline, { onUnknownDelivery }), RECONCILED);

it.each<Row>([
  ['fail', concluded('fail'), '@220', 'failed: DeliveryUnknown'],
  ['assume-delivered', concluded('assume-delivered'), '@220', 'watching: read at 220'],
  ['resend', concluded('resend'), '@220', 'sending: send at 220, resend permit'],
  ['ask', concluded('ask'), '@220', 'needs-decision: read at 220'],
  [
    'resend, and its POST received 429',
    afterResend(posted(RATE_LIMITED)),
    '@230',
    'sending: send at 235, resend permit',
  ],
  [
    'resend, and the job is active',
    play(resendAllowed('active'), sendEnded(notReady('active'), 230)),
    '@230',
    'waiting-for-job: read at 235',
  ],
  [
    'resend, and whenActive is reject',
    play(REJECT_RESEND, sendEnded(notReady('active'), 230)),
    '@230',
    'failed: DeliveryUnknown',
  ],
  [
    'resend, and the baseline read shows the turn',
    afterResend(notReady('active')),
    '@230',
    'watching: read at 243.05',
  ],
  ['resend, and its POST was rejected', afterResend(posted(REJECTED)), '@230', 'failed: DeliveryUnknown'],
  [
    'resend, and its POST is impossible',
    afterResend(posted(CONFIGURATION_ERROR)),
    '@230',
    'failed: DeliveryUnknown',
  ],
  ['resend, and its delivery is unknown', afterResend(posted(LOST)), '@230', 'reconciling: read at 260'],
  [
    'resend, and its delivery stays unknown',
    play(resendAllowed(), sendEnded(posted(LOST), 230), RECONCILED),
    '@400',
    'failed: DeliveryUnknown',
  ],
  [
    'resend, and the job no longer exists',
    afterResend(notReady('paused')),
    '235 404, 240 404, 245 404, 250 404, 265 404',
    'failed: JobNotFound',
  ],
  ['resend, and the deadline has passed', concluded('resend'), '@3600', 'failed: DeadlineExceeded'],
])('reconciling ended with an unknown delivery, and onUnknownDelivery is %s', (_, state, when, step) => {
  expectStep(state, when, null, step);
});

it.each<Row>([
  ['reads the job during the wait for a decision', needsDecision(), '', 'read at 105'],
  ['polls after two single reads', needsDecision(), '110 active, 115 active', 'poll active from 120 to 3600'],
  ['continues after a failure', needsDecision(), '110 503', 'read at 115'],
  ['keeps its phase if the key is rejected', needsDecision(), '110 403', 'read at 115'],
  [
    'ends if the job no longer exists',
    needsDecision(),
    '130 404, 140 404, 150 404, 160 404, 170 404',
    'failed: JobNotFound',
  ],
  [
    'ends if the job, which only the run before a reset has read, no longer exists',
    play(unsentAfterReset({ onUnknownDelivery: 'ask' }), sendEnded(resetEnd(null)), RECONCILED),
    '170 404, 180 404, 190 404, 200 404, 210 404',
    'failed: JobNotFound',
  ],
  [
    'ends without a decision if a read shows the turn',
    needsDecision('completed'),
    '400 active',
    'watching: read at 430.05',
  ],
  [
    'ends with the decision not-delivered',
    play(needsDecision(), NOT_DELIVERED),
    '@400',
    'sending: send at 400, operator permit',
  ],
  ['ends at the deadline', needsDecision(), '@3600', 'failed: DeadlineExceeded'],
])('needs-decision: %s', (_, state, when, step) => {
  expectStep(state, when, 'needs-decision', step);
});

it('a decision is needed only while the delivery is unknown, reconciled, and without a permit', () => {
  const rows = [
    needsDecision(),
    play(needsDecision(), NOT_DELIVERED),
    unknown('completed', { onUnknownDelivery: 'ask' }),
    concluded('fail'),
    unsent(),
  ];
  expect(rows.map((state) => isDecisionNeeded(state))).toEqual([true, false, false, false, false]);
});

// The POST ended at 100 s, so a read is fresh from 130 s on.
it.each<Row>([
  ['a read can show the turn of an idle job at once', accepted('completed'), '', 'read at 105'],
  [
    'the first fresh read is made as soon as a read can be fresh',
    accepted('completed'),
    '126 paused',
    'read at 130',
  ],
  ['a fresh read returned active', accepted('completed'), '130 active', 'read at 135'],
  [
    'the interval grows with the age of the turn',
    accepted('completed'),
    '130 active, 300 active',
    'poll active from 320.05 to 3600',
  ],
  [
    'the interval has a maximum',
    accepted('completed', { deadlineMs: ms(90_000) }),
    '130 active, 80000 active',
    'poll active from 80300 to 90000',
  ],
  [
    'a poll ended because its time was over',
    play(afterReads(accepted('completed'), '130 active, 135 active'), pollEnded('active', 5, 300)),
    '@300',
    'poll active from 320.05 to 3600',
  ],
  [
    'the worker does not know the status',
    accepted('completed'),
    '130 paused, 135 paused',
    'poll paused from 140 to 3600',
  ],
  ['a read failed', accepted('completed'), '130 active, 135 503, 140 503', 'read at 147.5'],
  [
    'a read received 429 with Retry-After',
    play(accepted('completed'), readEnded({ ...httpFailure(429), retryAfterMs: ms(60) }, 130)),
    '@130',
    'read at 190',
  ],
  ['a read was rejected with 401', accepted('completed'), '130 401', 'unauthorized: read at 135'],
  ['a read received 404', accepted('completed'), '130 404', 'read at 135'],
  [
    'the job no longer exists',
    accepted('completed'),
    '130 404, 140 404, 150 404, 155 404, 160 404',
    'failed: JobNotFound',
  ],
  [
    'five 404s in less than maxStaleness',
    accepted('completed'),
    '130 404, 140 404, 150 404, 155 404, 159 404',
    'read at 164',
  ],
  [
    'five 404s, but the latest read is not fresh',
    accepted('completed'),
    '100 404, 101 404, 102 404, 103 404, 129 404',
    'read at 134',
  ],
  [
    'an operator requested a read',
    play(afterReads(accepted('completed'), '130 active, 135 active'), readRequested(136)),
    '@136',
    'read at 136',
  ],
  [
    'the next read would come after the deadline',
    accepted('completed'),
    '130 active, 135 active, 3590 active',
    'read at 3600',
  ],
  [
    'the deadline has passed, and a last read is made',
    accepted('completed'),
    '130 active, 3599 active @3600',
    'read at 3600',
  ],
  [
    'the deadline has passed, and the last read failed',
    accepted('completed'),
    '130 active, 3600 503',
    'failed: DeadlineExceeded',
  ],
  [
    'the deadline has passed, and the last read returned active',
    accepted('completed'),
    '130 active, 3600 active',
    'failed: DeadlineExceeded',
  ],
  [
    'the deadline has passed, and the status of the last read is accepted',
    accepted('completed'),
    '130 active, 3600 failed',
    'done: failed, seen-active',
  ],
])('watching: %s', (_, state, when, step) => {
  expectStep(state, when, 'watching', step);
});

it.each<Row>([
  ['a terminal status before a read can be fresh', accepted('completed'), '105 completed', 'read at 110'],
  [
    'a turn was seen, and its end is not fresh',
    accepted('completed'),
    '105 active, 110 completed',
    'read at 130',
  ],
  ['the status must stay the same', accepted('completed'), '130 completed', 'read at 160'],
  ['a read in between changes nothing', accepted('completed'), '130 completed, 145 completed', 'read at 160'],
  ['the read at the end of this time failed', accepted('completed'), '130 completed, 160 503', 'read at 165'],
  ['the key was rejected', accepted('completed'), '130 completed, 160 403', 'unauthorized: read at 165'],
  [
    'the job is active again',
    accepted('active'),
    '130 completed, 160 active',
    'watching: poll active from 166.05 to 3600',
  ],
  [
    'the deadline is earlier than the end of this time',
    accepted('completed'),
    '130 active, 3590 paused, 3595 archived',
    'done: archived, seen-active',
  ],
  [
    'the deadline has passed, and a last read is made',
    accepted('active'),
    '130 active, 3590 failed',
    'read at 3600',
  ],
  [
    'the deadline has passed, and the status is not accepted',
    accepted('active'),
    '130 active, 3590 failed, 3600 failed',
    'failed: DeadlineExceeded',
  ],
])('confirming: %s', (_, state, when, step) => {
  expectStep(state, when, 'confirming', step);
});

const DONE = afterReads(accepted('completed'), '110 active, 130 completed');

// The prLinkTimeout is 20 s.
it.each<Row>([
  ['a completed job has no link', DONE, '@130', 'poll completed from 135 to 150'],
  ['the first reads are single reads', accepted('failed'), '130 completed', 'read at 135'],
  ['the last read is made when prLinkTimeout is over', DONE, '146 completed', 'read at 150'],
  ['the last read failed', DONE, '150 503', 'read at 155'],
  ['the key was rejected', DONE, '135 401', 'unauthorized: read at 140'],
  ['an operator requested a read', play(DONE, readRequested(131)), '@131', 'read at 131'],
  ['the job has a link', DONE, '135 completed+link', 'done: completed, seen-active'],
  ['prLinkTimeout is over', DONE, '150 completed', 'done: completed, seen-active'],
  ['the job is active again', DONE, '135 active', 'watching: poll active from 140 to 3600'],
  ['a failed job has no link', accepted('completed'), '130 failed', 'done: failed, status-changed'],
  ['the deadline has passed', DONE, '@3600', 'done: completed, seen-active'],
])('waiting-for-link: %s', (_, state, when, step) => {
  expectStep(state, when, 'waiting-for-link', step);
});

// A read is made only if it can decide something (rule 4 of the contract). The POST ended at 100 s.
it.each<Row>([
  ['the job was idle, so a read can show the turn', accepted('completed'), '', 'watching: read at 105'],
  [
    'the turn was seen, so the next read is the first fresh read',
    accepted('completed'),
    '105 active',
    'watching: read at 130',
  ],
  [
    'the job was active before, so the next read is the first fresh read',
    accepted('active'),
    '',
    'watching: read at 130',
  ],
  [
    'the baseline is not known, so the next read is the first fresh read',
    accepted(null),
    '',
    'watching: read at 130',
  ],
  [
    'the delivery is unknown, so the next read is the first fresh read',
    unknown('completed'),
    '',
    'reconciling: read at 130',
  ],
  [
    'no read can show the unknown delivery, so no read is made',
    unknown('active'),
    '',
    'reconciling: conclude',
  ],
  [
    'the status must stay the same, so the next read is at the end of that time',
    accepted('active'),
    '130 completed',
    'confirming: read at 160',
  ],
  [
    'a read failed before a read can be fresh, so the next read is the first fresh read',
    accepted('active'),
    '105 503',
    'watching: read at 130',
  ],
  [
    'the wait after a failure is long, so no read is made before its end',
    play(accepted('active'), readEnded({ ...httpFailure(429), retryAfterMs: ms(90) }, 105)),
    '@105',
    'watching: read at 195',
  ],
  [
    'an operator requested a read, so the read is made immediately',
    play(accepted('active'), readRequested(103)),
    '@103',
    'watching: read at 103',
  ],
  [
    'the first fresh read would come after the deadline, so the last read is made at the deadline',
    accepted('active', { deadlineMs: ms(110) }),
    '',
    'watching: read at 110',
  ],
])('a read is made only if it can decide something: %s', (_, state, when, step) => {
  expectStep(state, when, null, step);
});

const UNCHANGED = '130 active, 135 active, 140 active, 145 active';
const activeReads = (from: number, reads: number) =>
  Array.from({ length: reads }, (_, index) => `${from + index} active`).join(', ');
const withReads = (timerPolls: number | 'all') => ({ polling: { ...PLAN.polling, timerPolls } });

it.each<Row>([
  ['one of 2 single reads was made', accepted('completed'), '130 active', 'watching: read at 135'],
  [
    'both of 2 single reads were made',
    accepted('completed'),
    '130 active, 135 active',
    'watching: poll active from 140 to 3600',
  ],
  [
    'timerPolls is 0',
    accepted('completed', withReads(0)),
    '130 active',
    'watching: poll active from 135 to 3600',
  ],
  [
    'timerPolls is 0, and the job was not read yet',
    accepted('completed', withReads(0)),
    '',
    'watching: read at 105',
  ],
  [
    'four of 5 single reads were made',
    afterReads(accepted('completed', withReads(5)), UNCHANGED),
    '@145',
    'watching: read at 150',
  ],
  [
    'timerPolls is all',
    afterReads(accepted('completed', withReads('all')), activeReads(130, 300)),
    '@429',
    'watching: read at 461.95',
  ],
  [
    'timerPolls is all, and 200 single reads were made before the delivery is known',
    afterReads(needsDecisionOf('all'), activeReads(130, 200)),
    '@329',
    'needs-decision: poll active from 351.95 to 3600',
  ],
  [
    'timerPolls is all, and 199 single reads were made before the delivery is known',
    afterReads(needsDecisionOf('all'), activeReads(130, 199)),
    '@328',
    'needs-decision: read at 350.85',
  ],
  [
    'timerPolls is all, and 200 single reads were made while waiting for the job',
    afterReads(afterSend(notReady('active'), withReads('all')), activeReads(101, 200)),
    '@300',
    'waiting-for-job: poll active from 320 to 3600',
  ],
])('single reads come before a poll: %s', (_, state, when, step) => {
  expectStep(state, when, null, step);
});

function needsDecisionOf(timerPolls: 'all'): FollowUpState {
  return play(unknown('active', { onUnknownDelivery: 'ask', ...withReads(timerPolls) }), RECONCILED);
}

// A run continues as new only after the message was delivered. Before that, the waits in a long history grow, so that the history
// lasts until the deadline.
it.each<Row>([
  ['a send after a failure', afterSend(notRead(503)), '', 'starting: send at 220, first permit'],
  ['a send after the job was idle', WAITING, '110 completed', 'sending: send at 230, first permit'],
  ['a read while waiting for the job', WAITING, '', 'waiting-for-job: read at 220'],
  [
    'a read that an operator requested',
    play(WAITING, readRequested(110)),
    '@110',
    'waiting-for-job: read at 110',
  ],
  ['a wait that would end after the deadline', WAITING, '3550 active', 'waiting-for-job: read at 3600'],
])(
  'the next request is at least the minimum wait of 120 s later, except for a requested read and the deadline: %s',
  (_, state, when, step) => {
    expectStep(state, when, null, step, { minWait: 120 });
  },
);

it('a poll has the latest state of the job, and the start of the turn or of the wait for the job', () => {
  const watching = nextStep(afterReads(accepted('completed'), '130 active, 135 paused'), ms(135), () => 0);
  expect(watching).toMatchObject({ do: 'poll', lastState: { status: 'paused' }, pollingStartedAt: ms(99.5) });
  const waiting = nextStep(afterReads(WAITING, '105 active, 110 active'), ms(110), () => 0);
  expect(waiting).toMatchObject({ do: 'poll', lastState: { status: 'active' }, pollingStartedAt: ms(100) });
});

it('a further POST gets the earlier baseline only if its own baseline read is fresh for the earlier POST', () => {
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
])('a cancelled follow-up ends immediately: %s', (_, state) => {
  for (const second of [100, DEADLINE + 1])
    expect(describeStep(play(state, CANCELLED), second)).toBe('cancelled');
});

it.each([
  ['FollowUpRejected', afterSend(posted(REJECTED)), 'http 422.', 422],
  [
    'FollowUpRejected',
    afterSend(notReady('paused'), { whenActive: 'reject' }),
    'The job is paused, and whenActive is reject.',
    undefined,
  ],
  ['FollowUpRejected', afterSend(notRead(403)), "The job can't be read: http 403.", 403],
  ['JobNotFound', afterSend(notRead(404)), 'The agent service has no such job: http 404.', 404],
  [
    'JobNotFound',
    afterReads(accepted('completed'), '130 404, 140 404, 150 404, 155 404, 160 404'),
    'The job no longer exists: the agent service has returned 404 for all recent reads.',
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
    "ECONNRESET. Reading the job can't show whether the message arrived, because the job was not idle before the POST, or its state before the POST is not known.",
    undefined,
  ],
  [
    'DeadlineExceeded',
    unsent(),
    'The deadline passed. The last status of the job was: never read. The last response was: none.',
    undefined,
  ],
  [
    'DeadlineExceeded',
    afterSend(notRead(REFUSED)),
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
