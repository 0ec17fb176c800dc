import { expect, it } from '@jest/globals';
import { isJobLockHolder, isSendResult, type SendResult } from '../../src/contract/send-result';
import { isJobResponse, isPollJobResult, type PollJobResult } from '../../src/contract/activities';
import { type BatchBoard, isBatchBoard } from '../../src/batch/board';
import { recordedOutcomeFields, outcomeFromResult } from '../../src/contract/outcome';
import type { AgentJob } from '../../src/contract/job';
import { count, objectOf, isRecord } from '../../src/contract/checks';
import { isFollowUpResult } from '../../src/contract/result';
import { JOB as MINIMAL_JOB, RECEIPT } from '../harness/fixtures';

const JOB: AgentJob = { ...MINIMAL_JOB, prLink: 'https://example.test/pull/1', createdAt: '2026-11-21' };

const FAILURE = { label: 'http_503', message: 'http 503', httpStatus: 503 } as const;

const POLL: PollJobResult = { reads: 3, response: { kind: 'job', job: JOB }, requestedAt: 1_000 };

const POSTED = { kind: 'posted', baseline: JOB, sentAt: 1_000 } as const;
const OUTCOMES: readonly SendResult['outcome'][] = [
  { kind: 'lock-held', holder: { workflowId: 'w', firstRunId: 'r' } },
  { kind: 'not-read', ...FAILURE },
  { kind: 'job-not-ready', job: JOB },
  { kind: 'postponed', label: 'deadline', message: 'the deadline passed before the send' },
  { kind: 'reset', baseline: JOB, ...FAILURE },
  { ...POSTED, outcome: { verdict: 'accepted', job: JOB } },
  { ...POSTED, outcome: { verdict: 'unknown', ...FAILURE } },
  { ...POSTED, outcome: { verdict: 'rejected', ...FAILURE } },
  { ...POSTED, outcome: { verdict: 'not-sent', reachedService: false, ...FAILURE } },
];
const SENDS = OUTCOMES.map((outcome) => ({ outcome, lockRunId: 'lock-1' }));

const LANE = { next: 3, end: 5, state: 'running', retriedRunId: 'run' } as const;
const BOARD: BatchBoard = {
  ...{ cursor: 9, lanes: [LANE, { next: 5, end: 9, state: 'pending' }] },
  ...{ ended: 3, byStatus: { completed: 2 }, byFailure: { missing: 1 }, byEvidence: { unchanged: 2 } },
  firstFailures: [{ workflowId: 'w', outcome: 'missing', message: 'none' }],
  ...{ unknownDeliveries: 1, open: 1, quickEndAt: 1_000, blockedItem: { workflowId: 'w', reason: 'no key' } },
  startedEarlier: { cursor: 4, lanes: [{ next: 1, end: 2, state: 'starting' }] },
};

/** Yields copies of the value. Each copy has one of the value's leaves replaced. */
function* withEachLeaf(value: unknown, leaf: unknown): Generator {
  if (Array.isArray(value)) {
    for (const [index, each] of value.entries())
      for (const changed of withEachLeaf(each, leaf)) yield value.with(index, changed);
  } else if (isRecord(value)) {
    for (const [name, each] of Object.entries(value))
      for (const changed of withEachLeaf(each, leaf)) yield { ...value, [name]: changed };
  } else yield leaf;
}

it.each([
  ['a send result', isSendResult, SENDS],
  ['a read response', isJobResponse, [POLL.response, { kind: 'failure', ...FAILURE, retryAfterMs: 1_000 }]],
  ['a poll result', isPollJobResult, [POLL, { ...POLL, response: { kind: 'failure', ...FAILURE } }]],
  ['a job lock holder', isJobLockHolder, [{ workflowId: 'w', firstRunId: 'r' }]],
  ['a batch board', isBatchBoard, [BOARD]],
  [
    'a recorded outcome',
    objectOf(recordedOutcomeFields),
    [outcomeFromResult({ ...JOB, status: 'completed', receipt: RECEIPT })],
  ],
] as const)(
  'the check of %s accepts valid values, and rejects other types and values with one invalid leaf',
  (_, isResult: (value: unknown) => boolean, results) => {
    expect(results.filter((result) => !isResult(result))).toEqual([]);
    expect([undefined, '', 1, [], {}].filter((value) => isResult(value))).toEqual([]);
    // Each leaf becomes an array, a lone surrogate, a very long text, or NaN.
    for (const leaf of [['a'], '\ud800', 'x'.repeat(100_000), Number.NaN]) {
      const changed = results.flatMap((result) => [...withEachLeaf(result, leaf)]);
      expect(changed.filter((each) => isResult(each))).toEqual([]);
    }
  },
);

it('a count is a safe integer that is not negative', () => {
  expect([0.5, -1, 2 ** 53, Infinity, 0].filter((each) => count(each))).toEqual([0]);
});

// Proves D2.
it('a result of a later version is accepted with an unknown evidence and confirmedBy, but not without a verdict', () => {
  const delivery = { ...RECEIPT.delivery, confirmedBy: 'the-service' };
  const receipt = { ...RECEIPT, evidence: 'reported-by-the-service', delivery };
  const result = { ...JOB, status: 'completed', receipt };
  expect(outcomeFromResult(result)).toMatchObject({
    ...{ outcome: 'completed', delivery: 'accepted', evidence: 'reported-by-the-service' },
  });
  expect(isFollowUpResult(result)).toBe(true);
  // The verdict decides whether the message may be sent again.
  const unknown = { ...receipt, delivery: { ...delivery, verdict: undefined } };
  expect(isFollowUpResult({ ...result, receipt: unknown })).toBe(false);
});
