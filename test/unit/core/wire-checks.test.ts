import { describe, expect, it } from '@jest/globals';
import type { PollJobResult, SendResult } from '../../../src/core/activities';
import {
  areEndsOfItems,
  isContinuedState,
  isEarlierPage,
  isEndOfItem,
  isJobAnswer,
  isPageTrouble,
  isPollJobResult,
  isSendResult,
} from '../../../src/core/wire-checks';
import type { EarlierPage } from '../../../src/core/batch-workflows';
import type { AgentJob } from '../../../src/core/job';
import { isRecord } from '../../../src/core/json';

const JOB: AgentJob = {
  id: 'job-1',
  status: 'active',
  source: { repository: 'https://example.test/docs', ref: null },
  model: null,
  prLink: 'https://example.test/pull/1',
  createdAt: '2026-11-21T00:00:00.000Z',
  archivedAt: null,
};

const STATE = { status: 'active', prLink: null, archivedAt: null };

const TROUBLE = { label: 'http 503', message: 'The service answered 503.', httpStatus: 503 } as const;

const POLL: PollJobResult = {
  answer: { kind: 'job', job: JOB },
  askedAt: 1_000,
  before: {
    polls: 3,
    observed: { active: 2, 'http 503': 1 },
    trouble: { last: { kind: 'trouble', ...TROUBLE }, count: 1, notFound: { count: 1, since: 1_000 } },
    lastAnswer: 'active',
    nextReadAt: 2_000,
  },
};

const SENDS: readonly SendResult[] = [
  { kind: 'unread', trouble: { kind: 'trouble', ...TROUBLE } },
  { kind: 'held-back', job: JOB },
  { kind: 'not-permitted', message: 'The deadline has passed.' },
  { kind: 'reset', baseline: JOB, ...TROUBLE },
  { kind: 'posted', baseline: JOB, sentAt: 1_000, outcome: { verdict: 'accepted', job: JOB } },
  { kind: 'posted', baseline: JOB, sentAt: 1_000, outcome: { verdict: 'unknown', ...TROUBLE } },
  {
    kind: 'posted',
    baseline: JOB,
    sentAt: 1_000,
    outcome: { verdict: 'not-sent', repeatable: true, answered: false, ...TROUBLE },
  },
];

const EARLIER: EarlierPage = {
  ends: [
    {
      workflowId: 'follow-up:docs:job-1:a',
      projectId: 'docs',
      jobId: 'job-1',
      requestId: 'a',
      outcome: 'completed',
      delivery: 'accepted',
      evidence: 'seen-active',
      prLink: 'https://example.test/pull/1',
      message: 'none',
      settledAt: '2026-11-21T00:00:00.000Z',
    },
  ],
  left: ['follow-up:docs:job-2:b'],
};

const ENDS = EARLIER.ends.map(({ outcome, delivery, evidence, prLink, message }) => ({
  ...{ outcome, delivery, evidence, prLink, message },
}));

/** The value with each of its leaves replaced, one at a time. */
function* withEachLeaf(value: unknown, leaf: unknown): Generator {
  if (Array.isArray(value)) {
    for (const [index, each] of value.entries())
      for (const changed of withEachLeaf(each, leaf)) yield value.with(index, changed);
  } else if (isRecord(value)) {
    for (const [name, each] of Object.entries(value))
      for (const changed of withEachLeaf(each, leaf)) yield { ...value, [name]: changed };
  } else yield leaf;
}

const CONTINUED = {
  plan: {
    ...{ projectId: 'docs', jobId: 'job-1', requestId: 'a', whenActive: 'send', onUnknownDelivery: 'fail' },
    ...{ deadlineMs: 1_000, reconcileMs: 0, settleMs: 0, confirmMs: 0 },
    polling: { initialMs: 100, growth: 0.1, maximumMs: 1_000, jitter: 0, timerPolls: 3 },
  },
  settings: { readTaskQueue: 'r', sendTaskQueue: 's', httpTimeoutMs: 1_000, pollLimitMs: 1_000 },
  ...{
    deadlineAt: 1_000,
    phase: 'watching',
    job: JOB,
    baseline: STATE,
    resent: false,
    sentAt: 0,
    evidence: null,
  },
  delivery: { verdict: 'accepted', confirmedBy: 'response', sends: 1 },
  ...{ lastAnswer: 'active', nextPollAt: null },
  watch: {
    observations: {
      ...{ baseline: STATE, freshFrom: 0, seenActive: true },
      fresh: { job: STATE, since: 0, askedAt: 0, answers: 1 },
    },
    ...{ since: 0, trouble: { last: null, count: 0, notFound: null }, last: STATE, steady: true, polls: 1 },
    observed: { active: 1 },
  },
};

/** A value without one of its fields, for each field of each object in it. */
function* withoutEachField(value: unknown): Generator<[string, unknown]> {
  if (!isRecord(value)) return;
  for (const [name, each] of Object.entries(value)) {
    const rest = Object.fromEntries(Object.entries(value).filter(([other]) => other !== name));
    yield [name, rest];
    for (const [inner, changed] of withoutEachField(each))
      yield [`${name}.${inner}`, { ...value, [name]: changed }];
  }
}

describe('the state that a run hands to the next one', () => {
  it('is known', () => {
    expect(isContinuedState(CONTINUED)).toBe(true);
  });

  it('is refused without any of its fields', () => {
    const counts = 'watch.observed.active';
    for (const [field, changed] of withoutEachField(CONTINUED))
      expect([field, isContinuedState(changed)]).toEqual([field, field === counts]);
  });
});

describe.each([
  ['a send', isSendResult, SENDS],
  ['a read', isJobAnswer, [POLL.answer, { kind: 'trouble', ...TROUBLE, retryAfterMs: 1_000 }]],
  ['a poll', isPollJobResult, [POLL, { ...POLL, answer: null }]],
  ['an earlier page', isEarlierPage, [EARLIER]],
  ['a look at a page', isPageTrouble, [{ batchIsGone: false, lost: ['follow-up:docs:job-1:a'] }]],
  ['the end of a follow-up', isEndOfItem, ENDS],
  ['the ends of some', (value: unknown) => areEndsOfItems(value) && value.length > 0, [ENDS]],
] as const)('the result of %s', (_, isResult: (value: unknown) => boolean, results) => {
  it.each(results.map((result) => [JSON.stringify(result), result]))('is known: %s', (__, result) => {
    expect(isResult(result)).toBe(true);
  });

  it.each([
    ['a list', ['a']],
    ['half a character', '\ud800'],
    ['a text without end', 'x'.repeat(100_000)],
    ['no finite number', Number.NaN],
  ])('has nowhere %s', (__, leaf) => {
    const changed = results.flatMap((result) => [...withEachLeaf(result, leaf)]);
    expect(changed.filter((each) => isResult(each))).toEqual([]);
  });

  it.each([undefined, '', 1, [], {}])('is not %j', (value) => {
    expect(isResult(value)).toBe(false);
  });
});
