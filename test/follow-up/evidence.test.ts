import { expect, it } from '@jest/globals';
import {
  canShowDelivery,
  canShowTurn,
  decideSend,
  judgeEnd,
  linkWaitEndsAt,
  addObservation,
  isDeliveryShown,
  createObservations,
} from '../../src/follow-up/evidence';
import { FRESH_FROM, job, LINK, ms, reads, SEND_ENDS } from './states';

/** The observations of the described reads. The POST ended at 100 s, and the baseline read returned `baseline`. */
function observed(baseline: string | null, description: string, freshFrom = FRESH_FROM) {
  const start = createObservations(baseline === null ? null : job(baseline), ms(freshFrom));
  return reads(description).reduce(
    (before, { response, requestedAt, at }) =>
      response.kind === 'job' ? addObservation(before, response.job, requestedAt, at) : before,
    start,
  );
}

function judge(baseline: string | null, reads: string, maxStaleness = 30): string {
  const judgment = judgeEnd(observed(baseline, reads, SEND_ENDS + maxStaleness), ms(maxStaleness));
  switch (judgment.kind) {
    case 'open':
      return 'open';
    case 'held':
      return `held until ${judgment.until / 1_000}`;
    case 'accepted':
      return judgment.evidence;
  }
}

// Rule 1 of the contract.
it.each<[title: string, baseline: string, reads: string, judgment: string]>([
  ['no response was received', 'completed', '', 'open'],
  ['the response is not fresh', 'completed', '129.999 completed', 'open'],
  ['a changed status is not fresh', 'completed', '129-135 failed', 'open'],
  [
    'only the response before the latest one was fresh and terminal',
    'active',
    '130 completed, 140 active',
    'open',
  ],
  ['the fresh response is active', 'completed', '130 active', 'open'],
  ['the worker does not know the fresh status', 'completed', '130 paused, 200 paused', 'open'],
])('no terminal status is accepted if %s', (_, baseline, reads, judgment) => {
  expect(judge(baseline, reads)).toBe(judgment);
});

// Rule 2.
it.each<[baseline: string, reads: string, evidence: string]>([
  ['completed', '110 active, 130 completed', 'seen-active'],
  ['completed', '130 active, 140 completed', 'seen-active'],
  ['completed', '110 active, 130 failed', 'seen-active'],
  ['failed', '110 active, 130 failed', 'seen-active'],
  ['archived', '110 active, 130 archived', 'seen-active'],
  ['completed', '130 failed', 'status-changed'],
  ['failed', '130 completed', 'status-changed'],
  ['archived', '130 completed', 'status-changed'],
  ['archived', '130 failed', 'status-changed'],
  ['completed', '110 failed, 130 failed', 'status-changed'],
])(
  'a job that was %s before the POST, and then %j, is accepted at once as %s',
  (baseline, reads, evidence) => {
    expect(judge(baseline, reads)).toBe(evidence);
  },
);

// Rule 3.
it.each<[title: string, baseline: string | null, reads: string, judgment: string]>([
  ['the status is the same as before', 'completed', '130 completed', 'held until 160'],
  [
    'the status is the same as before for long enough',
    'completed',
    '130 completed, 160 completed',
    'unchanged',
  ],
  ['the status changed to archived', 'completed', '130 archived+time', 'held until 160'],
  ['the status stays archived', 'completed', '130 archived+time, 160 archived+time', 'job-changed'],
  ['the link is new', 'completed', '130 completed+link, 160 completed+link', 'job-changed'],
  ['the link changed in between', 'completed', '130 completed, 160 completed+link', 'job-changed'],
  ['the job had the link before', 'completed+link', '130 completed+link, 160 completed+link', 'unchanged'],
  ['the link disappeared', 'completed+link', '130 completed, 160 completed', 'job-changed'],
  ['the job was active before', 'active', '130 completed', 'held until 160'],
  ['the job was active before, and ended', 'active', '130 completed, 160 completed', 'active-before'],
  [
    'the job was active before, and has a new link',
    'active',
    '130 completed+link, 160 completed+link',
    'job-changed',
  ],
  ['a turn was seen, which may be the earlier one', 'active', '110 active, 130 failed', 'held until 160'],
  ['the worker does not know the status before', 'paused', '130 failed, 160 failed', 'active-before'],
  ['the baseline is not known', null, '130 completed', 'held until 160'],
  ['the baseline is not known, but the status stays', null, '130 failed, 160 failed', 'active-before'],
])(
  'if nothing shows that the status is new, it must stay the same for maxStaleness: %s',
  (_, baseline, reads, judgment) => {
    expect(judge(baseline, reads)).toBe(judgment);
  },
);

it.each<[title: string, reads: string, judgment: string]>([
  ['runs from the first response’s arrival', '130-135 completed, 164.999-170 completed', 'held until 165'],
  ['runs to the last read’s request', '130-135 completed, 165-170 completed', 'unchanged'],
  ['does not count a response that is not fresh', '129 completed, 159 completed', 'held until 189'],
  [
    'does not restart with a changed link',
    '130 completed, 145 completed+link, 160 completed+link',
    'job-changed',
  ],
  ['restarts with another status', '130 completed, 140 paused, 150 completed', 'held until 180'],
  [
    'restarts with another terminal status',
    '130 completed, 140 archived+time, 160 archived+time',
    'held until 170',
  ],
])('the time for which a status must stay the same %s', (_, reads, judgment) => {
  expect(judge('completed', reads)).toBe(judgment);
});

// Only the times decide. The number of fresh responses has no further effect.
it.each<[title: string, reads: string, maxStaleness: number, judgment: string]>([
  ['one response', '130 completed', 30, 'held until 160'],
  ['one response that took longer than maxStaleness', '130-175 completed', 30, 'held until 205'],
  [
    'many responses in a shorter time',
    '130 completed, 140 completed, 150 completed, 159 completed',
    30,
    'held until 160',
  ],
  ['one response, with maxStaleness 0', '100 completed', 0, 'held until 100'],
  ['one slow response, with maxStaleness 0', '100-105 completed', 0, 'held until 105'],
  [
    'a second read that was requested as the first one arrived',
    '100-105 completed, 105 completed',
    0,
    'held until 105',
  ],
  [
    'a second read that was requested after the first one arrived',
    '100-105 completed, 105.001 completed',
    0,
    'unchanged',
  ],
])(
  'if nothing shows that the status is new, two reads must return it: %s',
  (_, reads, maxStaleness, judgment) => {
    expect(judge('completed', reads, maxStaleness)).toBe(judgment);
  },
);

it('observations keep the latest response, fresh or not, and whether any was active', () => {
  const seen = observed('completed', '110 active, 120 completed+link');
  expect(seen).toEqual({
    baseline: { status: 'completed', prLink: null, archivedAt: null },
    freshFrom: ms(130),
    hasSeenActive: true,
    last: { status: 'completed', prLink: LINK, archivedAt: null },
    freshStreak: null,
  });
  const fresh = observed('completed', '130-131 completed, 140-142 completed+link');
  expect(fresh.freshStreak).toEqual({ job: job('completed+link'), since: ms(131), requestedAt: ms(140) });
});

// Rule 4: before a response can be fresh, a read can only show that the turn has started.
it.each<[baseline: string | null, reads: string, canShow: boolean]>([
  ['completed', '', true],
  ['archived', '110 archived', true],
  ['completed', '110 paused', true],
  ['completed', '110 active', false],
  ['active', '', false],
  ['paused', '', false],
  [null, '', false],
])(
  'before the first fresh read, with baseline %j and reads %j, a read can show the turn: %j',
  (baseline, reads, canShow) => {
    expect(canShowTurn(observed(baseline, reads))).toBe(canShow);
  },
);

// Rule 6. The columns are the later statuses.
const LATER = ['active', 'completed', 'failed', 'archived', 'paused'];

it.each<[baseline: string | null, statuses: string[]]>([
  ['completed', ['active', 'failed']],
  ['failed', ['active', 'completed']],
  ['archived', ['active']],
  ['active', []],
  ['paused', []],
  [null, []],
])(
  'with the baseline %j, the statuses %j show that a message of unknown delivery arrived',
  (baseline, statuses) => {
    const shown = (second: number) =>
      LATER.filter((status) => isDeliveryShown(observed(baseline, `${second} ${status}`)));
    expect(shown(FRESH_FROM)).toEqual(statuses);
    // Only a fresh response shows the arrival.
    expect(shown(FRESH_FROM - 0.001)).toEqual([]);
    // Reads are made exactly if some status can show the arrival.
    expect(canShowDelivery(observed(baseline, ''))).toBe(statuses.length > 0);
  },
);

it('a turn that only a stale read saw does not show that a message of unknown delivery arrived', () => {
  expect(isDeliveryShown(observed('completed', '110 active, 130 completed'))).toBe(false);
});

// Rule 5, with a prLinkTimeout of 20 s.
it.each<[title: string, reads: string, until: number | null]>([
  ['the job has a link', '130 completed+link', null],
  ['the job failed', '130 failed', null],
  ['the job is archived', '130 archived', null],
  ['no response is fresh', '110 completed', null],
  ['the completed job has no link', '130-131 completed', 151],
  ['a read during that time returned no link', '130-131 completed, 150-155 completed', 151],
  ['a read at the end of that time returned no link', '130-131 completed, 151 completed', null],
  ['the link disappeared', '130-131 completed+link, 140 completed', 151],
  ['the job was active in between', '130 completed, 140 active, 145 completed', 165],
])('the wait for a late link ends at the right time: %s', (_, reads, until) => {
  expect(linkWaitEndsAt(observed('active', reads), ms(20))).toBe(until === null ? null : ms(until));
});

it('without a prLinkTimeout, a completed job without a link is not read again', () => {
  expect(linkWaitEndsAt(observed('active', '130-130 completed'), 0)).toBeNull();
});

// The columns are the values of whenActive.
it.each<[earlier: string | null, status: string, send: string, wait: string, reject: string]>([
  [null, 'completed', 'send', 'send', 'send'],
  [null, 'failed', 'send', 'send', 'send'],
  [null, 'archived', 'send', 'send', 'send'],
  [null, 'active', 'send', 'wait', 'reject'],
  [null, 'paused', 'send', 'wait', 'reject'],
  ['completed', 'completed', 'send', 'send', 'send'],
  ['completed', 'archived', 'send', 'send', 'send'],
  ['completed', 'paused', 'send', 'wait', 'reject'],
  ['completed', 'active', 'arrived', 'arrived', 'arrived'],
  ['completed', 'failed', 'arrived', 'arrived', 'arrived'],
  ['failed', 'completed', 'arrived', 'arrived', 'arrived'],
  ['archived', 'completed', 'send', 'send', 'send'],
  ['archived', 'active', 'arrived', 'arrived', 'arrived'],
  ['active', 'active', 'send', 'wait', 'reject'],
  ['active', 'completed', 'send', 'send', 'send'],
])(
  'a job that was %j before an earlier POST and is %s now: with whenActive send, wait and reject, the decision is %s, %s and %s',
  (earlier, status, ...decisions) => {
    const decided = (['send', 'wait', 'reject'] as const).map((whenActive) =>
      decideSend(job(status), whenActive, earlier === null ? null : job(earlier)),
    );
    expect(decided).toEqual(decisions);
  },
);
