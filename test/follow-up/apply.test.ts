import { expect, it } from '@jest/globals';
import { toJobState } from '../../src/contract/job';
import {
  continuation,
  decisionPhaseProblem,
  type FollowUpState,
  getObservations,
} from '../../src/follow-up/state';
import {
  ACCEPTED,
  accepted,
  afterReads,
  afterSend,
  CANCELLED,
  DELIVERED,
  describeDelivery,
  FRESH_FROM,
  HOLDER,
  httpFailure,
  job,
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
  pollEnded,
  posted,
  POSTPONED,
  readEnded,
  RECONCILED,
  REFUSED,
  REJECTED,
  resendAllowed,
  resetEnd,
  RUN_ID,
  SEND_ENDS,
  sendEnded,
  describeStep,
  unknown,
  UNREPORTED,
  unsent,
} from './states';

const NO_REPORT = posted({ verdict: 'unknown', label: 'no_report', message: 'no report' }, null);

// permits.test.ts shows that a send starts only in states like these.
const BEFORE_SEND = [
  ['unsent', unsent()],
  ['resend', resendAllowed()],
  ['operator', play(needsDecision(), NOT_DELIVERED)],
] as const;

// The columns after the outcome are the deliveries after a send with the first permit, the resend permit and an operator's permit.
it.each([
  ['the job lock is held', LOCK_HELD, 'unsent', 'unknown, resend permit', 'unknown, operator permit'],
  ['the baseline read failed', notRead(503), 'unsent', 'unknown, resend permit', 'unknown, operator permit'],
  ['the POST was postponed', POSTPONED, 'unsent', 'unknown, resend permit', 'unknown, operator permit'],
  [
    'the job is not ready',
    notReady('paused'),
    'unsent',
    'unknown, resend permit',
    'unknown, operator permit',
  ],
  ['the run was reset', resetEnd('completed'), 'unknown', 'unknown', 'unknown'],
  ['the POST was accepted', posted(ACCEPTED), ...twice('accepted by response'), 'accepted by response'],
  ['the delivery is unknown', posted(LOST), 'unknown', 'unknown', 'unknown'],
  ['the send was not reported', NO_REPORT, 'unknown', 'unknown', 'unknown'],
  ['the POST was rejected', posted(REJECTED), 'rejected', ...twice('rejected, an earlier POST is unknown')],
  [
    'the POST received 429',
    posted(RATE_LIMITED),
    'unsent',
    'unknown, resend permit',
    'unknown, operator permit',
  ],
  [
    'the POST had no connection',
    posted(NOT_CONNECTED),
    'unsent',
    'unknown, resend permit',
    'unknown, operator permit',
  ],
] as const)(
  'a send changes the delivery, and uses up its permit if the message may have been sent: %s',
  (_, outcome, ...expected) => {
    const after = BEFORE_SEND.map(([, before]) => describeDelivery(play(before, sendEnded(outcome, 300))));
    expect(after).toEqual(expected);
  },
);

function twice<const T>(value: T): [T, T] {
  return [value, value];
}

// The columns after the outcome are the POSTs that count as sent, the failures in a row, and the status of the baseline.
it.each([
  ['the job lock is held', LOCK_HELD, 0, 0, undefined],
  ['the baseline read failed', notRead(503), 0, 1, undefined],
  ['the POST was postponed', POSTPONED, 0, 1, undefined],
  ['the job is not ready', notReady('active'), 0, 0, 'active'],
  ['the run was reset', resetEnd('completed'), 1, 0, 'completed'],
  ['the run was reset, and the job was not read', resetEnd(null), 1, 0, undefined],
  ['the POST was accepted', posted(ACCEPTED), 1, 0, 'completed'],
  ['the delivery is unknown', posted(LOST), 1, 0, 'completed'],
  ['the send was not reported', NO_REPORT, 1, 0, undefined],
  ['the POST was rejected', posted(REJECTED), 1, 0, 'completed'],
  ['the POST received 429', posted(RATE_LIMITED), 1, 1, 'completed'],
  ['the POST had no connection', posted(NOT_CONNECTED), 0, 1, 'completed'],
] as const)(
  'after a send, the state counts POSTs that may have arrived, and failures in a row: %s',
  (_, outcome, sends, failures, baseline) => {
    const after = play(unsent(), sendEnded(outcome));
    expect([after.sends, after.failures.count, after.baseline?.status]).toEqual([sends, failures, baseline]);
  },
);

it('a baseline read before a further POST can show the arrival exactly if it was requested at freshFrom or later', () => {
  // The read is requested one second before the send ends.
  const deliveries = [FRESH_FROM + 1, FRESH_FROM + 0.999].map((at) =>
    describeDelivery(play(resendAllowed(), sendEnded(notReady('active'), at))),
  );
  expect(deliveries).toEqual(['accepted by read', 'unknown, resend permit']);
});

it('a reset keeps the known job unless the send read the job, and a read is fresh after the earlier POST', () => {
  const waiting = afterSend(notReady('active'));
  const statuses = ['completed', null].map(
    (baseline) => play(waiting, sendEnded(resetEnd(baseline), 300)).job?.status,
  );
  expect(statuses).toEqual(['completed', 'active']);
  // The run before the reset had up to 40 s for its POST, and maxStaleness is 30 s.
  expect(describeStep(play(unsent(), sendEnded(resetEnd('completed'))), 100)).toBe(
    'reconciling: read at 170',
  );
});

it('a poll without an unchanged read adds no count', () => {
  const polled = play(accepted('completed'), pollEnded('active', 0, 200, 'paused'));
  expect(polled.responseCounts).toEqual({ paused: 1 });
});

it('only a granted resend uses up the one resend', () => {
  expect([needsDecision(), resendAllowed()].map(({ isResendUsed }) => isResendUsed)).toEqual([false, true]);
});

it('only the watch of an accepted message that is not cancelled continues in another run', () => {
  const watching = accepted('completed');
  expect(continuation(watching)).toEqual({ continued: watching });
  const others = [unsent(), unknown('completed'), play(watching, CANCELLED)];
  expect(others.map((state) => continuation(state))).toEqual([null, null, null]);
  expect(decisionPhaseProblem('watching')).toBe(
    'the follow-up is watching; a decision is accepted only in the phase needs-decision',
  );
});

it('a POST that may have arrived resets the count of failures in a row', () => {
  const failing = play(unsent(), sendEnded(notRead(503), 10), sendEnded(notRead(REFUSED), 20));
  expect(failing.failures).toMatchObject({ lastFailure: REFUSED, count: 2 });
  expect(play(failing, sendEnded(posted(LOST))).failures).toMatchObject({ lastFailure: null, count: 0 });
});

it.each([
  ['accepted', accepted('completed'), ms(130)],
  ['unknown', unknown('completed'), ms(130)],
  // The run before the reset had up to 40 s for its POST.
  ['from a run before a reset', afterSend(resetEnd('completed')), ms(170)],
])(
  'after a POST that is %s, reads are fresh from maxStaleness after the end of the POST',
  (_, { delivery }, freshFrom) => {
    expect(delivery).toMatchObject({
      reads: {
        baseline: toJobState(job('completed')),
        freshFrom,
        hasSeenActive: false,
        last: null,
        freshStreak: null,
      },
    });
  },
);

it('the job in the response to the POST is shown, but does not count as evidence', () => {
  const after = play(unsent(), sendEnded(posted({ verdict: 'accepted', job: job('failed') })));
  expect(after.job).toEqual(job('failed'));
  expect(after.delivery).toMatchObject({ reads: { last: null, freshStreak: null } });
});

it.each([
  ['within the send', ms(99.5), ms(99.5)],
  ['before the send, because the worker’s clock is behind', ms(10), ms(99)],
  ['after the send, because the worker’s clock is ahead', ms(900), ms(100)],
])('the time of the POST by the worker’s clock is limited to the send: %s', (_, sentAt, expected) => {
  const after = play(unsent(), sendEnded({ ...posted(ACCEPTED), sentAt } as typeof NO_REPORT));
  expect(after.sentAt).toBe(expected);
});

it('the baseline of a POST that may have arrived is kept until another POST may have arrived', () => {
  const before = resendAllowed('completed');
  for (const outcome of [
    notReady('paused'),
    posted(RATE_LIMITED, 'failed'),
    posted(NOT_CONNECTED, 'failed'),
    resetEnd('failed'),
  ])
    expect(play(before, sendEnded(outcome, 300))).toMatchObject({
      baseline: { status: 'completed' },
      delivery: { reads: { baseline: { status: 'completed' } } },
    });
  expect(play(before, sendEnded(posted(LOST, 'failed'), 300))).toMatchObject({
    baseline: { status: 'failed' },
    delivery: { reads: { baseline: { status: 'failed' } } },
  });
});

it('a reset uses up the one resend, because the run before the reset may have used the resend', () => {
  const after = play(unsent({ onUnknownDelivery: 'resend' }), sendEnded(resetEnd('completed')));
  expect(describeDelivery(play(after, RECONCILED))).toBe('unknown, reconciled');
});

it.each([
  ['shows the turn', 'completed', 'active', 300, 'accepted by read', null],
  ['shows the turn, but is not fresh', 'completed', 'active', 120, 'unknown, resend permit', ms(120)],
  ['shows nothing', 'completed', 'paused', 300, 'unknown, resend permit', ms(300)],
  [
    'shows nothing, because the job was active before',
    'active',
    'active',
    300,
    'unknown, resend permit',
    ms(300),
  ],
])(
  'after a baseline read before a further POST that %s, the delivery and the wait are correct',
  (_, baseline, status, at, delivery, waitingSince) => {
    const after = play(resendAllowed(baseline), sendEnded(notReady(status), at));
    expect(describeDelivery(after)).toBe(delivery);
    expect(after.waitingForJob?.since ?? null).toBe(waitingSince);
  },
);

const lock = (runId: string | null) => ({ runId });

it.each([
  ['acquired the lock', 'wait', posted(ACCEPTED), 'lock-1', null, lock('lock-1')],
  ['found that another follow-up holds the lock', 'wait', LOCK_HELD, null, lock('lock-1'), null],
  ['was not reported and may have acquired the lock', 'wait', NO_REPORT, null, null, lock(null)],
  ['was not reported and held the lock before', 'wait', NO_REPORT, null, lock('lock-1'), lock('lock-1')],
  ['needs no lock', 'send', posted(ACCEPTED), null, null, null],
  ['needs no lock and was not reported', 'reject', NO_REPORT, null, null, null],
] as const)(
  'the state of the job lock is correct after a send that %s',
  (_, whenActive, outcome, lockRunId, jobLock, expected) => {
    const before = { ...unsent({ whenActive }), jobLock };
    expect(play(before, sendEnded(outcome, SEND_ENDS, lockRunId)).jobLock).toEqual(expected);
  },
);

it('a postponed send keeps the job that was read, so that a later 404 does not end the follow-up as JobNotFound', () => {
  const postponed = play(unsent(), sendEnded({ ...POSTPONED, job: job('completed') }));
  expect(postponed).toMatchObject({ job: job('completed'), failures: { count: 1 } });
  expect(describeStep(play(postponed, sendEnded(notRead(404), 110)), 111)).toBe(
    'sending: send at 115, first permit',
  );
});

it('a follow-up waits for the job lock of another follow-up until the wait ends', () => {
  const waiting = afterSend(LOCK_HELD);
  expect(waiting).toMatchObject({ lockHolder: HOLDER, jobLock: null });
  for (const lockRunId of ['lock-1', null])
    expect(play(waiting, { kind: 'lock wait ended', lockRunId })).toMatchObject({
      lockHolder: null,
      jobLock: { runId: lockRunId },
    });
});

// Events of ended reads.
it.each([
  ['while unsent', unsent(), 'active', 'unsent'],
  ['after rejection', afterSend(posted(REJECTED)), 'active', 'rejected'],
  ['after acceptance', accepted('completed'), 'failed', 'accepted by response'],
  ['that shows the turn', unknown('completed'), 'active', 'accepted by read'],
  ['that shows the turn although a resend is allowed', resendAllowed(), 'active', 'accepted by read'],
  ['that shows nothing', unknown('completed'), 'completed', 'unknown'],
  ['of a job that was active before', unknown('active'), 'completed', 'unknown'],
  ['that failed', unknown('completed'), 503, 'unknown'],
])('after a fresh read %s, the delivery is correct', (_, before, read, delivery) => {
  expect(describeDelivery(play(before, readEnded(read, FRESH_FROM)))).toBe(delivery);
});

it('a read that is not fresh does not show that the message arrived', () => {
  expect(describeDelivery(afterReads(unknown('completed'), '120-131 active'))).toBe('unknown');
});

it.each([
  ['completed', { job: job('completed'), failures: { lastFailure: null, count: 0, notFound: null } }],
  [503, { job: job('active'), failures: { lastFailure: httpFailure(503), count: 3, notFound: null } }],
  [
    404,
    {
      job: job('active'),
      failures: { lastFailure: httpFailure(404), count: 3, notFound: { count: 2, since: ms(120) } },
    },
  ],
])(
  'after a 503 and a 404, the read %j resets or continues the count of failures in a row',
  (read, expected) => {
    const before = afterReads(accepted('completed'), '110 503, 120 404');
    expect(play(before, readEnded(read, 140))).toMatchObject(expected);
  },
);

it('a read records the times of its request and its response', () => {
  const after = afterReads(accepted('completed'), '130-137 active');
  expect([after.lastRequestAt, after.lastResponseAt]).toEqual([ms(130), ms(137)]);
});

it.each([
  ['unsent', unsent(), 0, {}],
  ['accepted', accepted('completed'), 4, { active: 2, http_503: 1, completed: 1 }],
  ['unknown', unknown('active'), 4, { active: 2, http_503: 1, completed: 1 }],
])(
  'reads are counted only if a POST may have arrived: the message is %s',
  (_, before, polls, responseCounts) => {
    const after = afterReads(before, '130 active, 140 503, 150 active, 160 completed');
    expect(after).toMatchObject({ polls, responseCounts });
  },
);

const WAITING = afterSend(notReady('active'));

it.each([
  ['an idle job', 'completed', null],
  ['an active job', 'active', { since: ms(SEND_ENDS), reads: 1 }],
  ['a job of unknown status', 'paused', { since: ms(SEND_ENDS), reads: 1 }],
  ['a failure', 503, { since: ms(SEND_ENDS), reads: 1 }],
])(
  'a follow-up that waits for the job counts its reads until the job is idle: it reads %s',
  (_, read, waitingForJob) => {
    expect(play(WAITING, readEnded(read, 110)).waitingForJob).toEqual(waitingForJob);
  },
);

it('a follow-up stops waiting for an idle job when a read shows that the message arrived', () => {
  const waiting = play(resendAllowed('completed'), sendEnded(notReady('active'), 120));
  expect(waiting.waitingForJob).not.toBeNull();
  expect(play(waiting, readEnded('active', FRESH_FROM))).toMatchObject({
    delivery: { kind: 'accepted', confirmedBy: 'read' },
    waitingForJob: null,
  });
});

// Events of ended polls.
it.each([
  ['its time has passed', pollEnded('active', 7, 500), { polls: 8, responseCounts: { active: 8 } }, 'active'],
  [
    'the job has changed',
    pollEnded('active', 7, 500, 'completed'),
    { polls: 9, responseCounts: { active: 8, completed: 1 } },
    'completed',
  ],
  [
    'a read failed',
    pollEnded('active', 7, 500, 503),
    { polls: 9, responseCounts: { active: 8, http_503: 1 } },
    'active',
  ],
  [
    'no worker made a read',
    pollEnded('active', 0, 500),
    { polls: 1, responseCounts: { active: 1 } },
    'active',
  ],
])('the reads of a poll are counted when it ends because %s', (_, event, counts, status) => {
  const after = play(afterReads(accepted('completed'), '130 active'), event);
  expect(after).toMatchObject({ ...counts, lastResponseAt: ms(500), job: { status }, pollNowAt: null });
});

it('the reads of a poll during the wait for the job are counted, and an idle job ends the wait', () => {
  expect(play(WAITING, pollEnded('active', 7, 500)).waitingForJob).toEqual({ since: ms(100), reads: 7 });
  expect(play(WAITING, pollEnded('active', 7, 500, 'failed'))).toMatchObject({
    waitingForJob: null,
    polls: 0,
  });
});

it('a poll that an update interrupted is followed by one read', () => {
  const interrupted = { ...pollEnded('active', 7, 500), isInterrupted: true };
  expect(play(accepted('completed'), interrupted)).toMatchObject({ pollNowAt: ms(500), polls: 7 });
});

// Events of an operator's updates, and of a cancellation.
it.each([
  ['a read that was requested later', readEnded('active', 205, 200), null],
  ['a read that was requested later, and failed', readEnded(503, 205, 200), null],
  ['a read that was in progress', readEnded('active', 205, 199), ms(200)],
  ['a send', sendEnded(notReady('active'), 205), null],
])('a request for a read is fulfilled by a later read or send: %s', (_, event, pollNowAt) => {
  const requested = play(accepted('completed'), { kind: 'read requested', at: ms(200) });
  expect(requested.pollNowAt).toBe(ms(200));
  expect(play(requested, event).pollNowAt).toBe(pollNowAt);
});

it.each([
  ['later', 7_200, 7_200],
  ['earlier', 200, 3_600],
])('extendDeadline never sets an earlier deadline: the new deadline is %s', (_, second, deadline) => {
  const event = { kind: 'deadline extended', deadlineAt: ms(second) } as const;
  expect(play(unsent(), event)).toEqual({ ...unsent(), deadlineAt: ms(deadline) });
});

it.each([
  ['delivered', DELIVERED, 'accepted by operator'],
  ['not-delivered', NOT_DELIVERED, 'unknown, operator permit'],
])('the decision %s has its effect on the delivery, and keeps the reads', (_, event, delivery) => {
  const before = needsDecision();
  const after = play(before, event);
  expect(describeDelivery(after)).toBe(delivery);
  // The reads since the POST are kept.
  const { reads } = before.delivery as typeof before.delivery & { kind: 'unknown' };
  expect(after).toMatchObject({ delivery: { reads }, sentAt: ms(99.5) });
});

it('an operator’s permit is valid for the run that the decision names', () => {
  const after = play(needsDecision(), { ...NOT_DELIVERED, runId: 'run-2' } as typeof NOT_DELIVERED);
  expect(after.delivery).toMatchObject({ permit: { kind: 'operator', runId: 'run-2' } });
  expect(play(needsDecision(), NOT_DELIVERED).delivery).toMatchObject({ permit: { runId: RUN_ID } });
});

it.each([
  ['unsent', unsent()],
  ['accepted', accepted('completed')],
  ['rejected', afterSend(posted(REJECTED))],
])('a decision has no effect on a message that is %s', (_, state) => {
  for (const event of [DELIVERED, NOT_DELIVERED, RECONCILED]) expect(play(state, event)).toBe(state);
});

it.each([
  ['fail', 'unknown, reconciled'],
  ['assume-delivered', 'accepted by assumed'],
  ['resend', 'unknown, resend permit'],
  ['ask', 'unknown, reconciled'],
] as const)('the end of reconciling applies onUnknownDelivery: %s', (onUnknownDelivery, delivery) => {
  expect(describeDelivery(play(unknown('completed', { onUnknownDelivery }), RECONCILED))).toBe(delivery);
});

it('the resend is permitted only once', () => {
  const reconciled = play(resendAllowed(), sendEnded(posted(LOST), 300), RECONCILED);
  expect(describeDelivery(reconciled)).toBe('unknown, reconciled');
});

it('a cancellation changes only isCancelled', () => {
  expect(play(accepted('completed'), CANCELLED)).toEqual({ ...accepted('completed'), isCancelled: true });
});

it('a read is fresh maxStaleness after the latest end of each POST that no worker reported', () => {
  const freshFrom = (state: FollowUpState) => getObservations(state)?.freshFrom;
  const unreported = sendEnded(posted(UNREPORTED, null));
  // The send permission was requested at 99.5 s, the POST ends within 40 s, and maxStaleness is 30 s.
  expect(freshFrom(play(unsent(), unreported))).toBe(ms(169.5));
  // The send ended at 200 s, long after the POST.
  const late = { ...sendEnded(posted(UNREPORTED), 200), startedAt: ms(99) };
  expect(freshFrom(play(unsent(), late))).toBe(ms(230));
  const resend = play(unsent({ onUnknownDelivery: 'resend' }), unreported, RECONCILED);
  expect(freshFrom(play(resend, sendEnded(posted(LOST), 101)))).toBe(ms(169.5));
});
