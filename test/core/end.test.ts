import { describe, expect, it } from '@jest/globals';
import {
  cancelledInWords,
  type End,
  endOfCancelled,
  endOfConflict,
  endOfFailure,
  endOfMemo,
  endOfResult,
  endWithoutReceipt,
  isFailure,
  mayTryAgain,
  memoOfEnd,
  OUTCOMES,
} from '../../src/core/end';
import { FAILURE_TYPES, type Receipt, VERDICTS } from '../../src/core/result';
import { MAX_LINK_CHARACTERS } from '../../src/core/text';
import { JOB } from '../harness/samples';

const RECEIPT: Receipt = {
  delivery: { verdict: 'accepted', confirmedBy: 'response', sends: 1 },
  ...{ requestId: 'r', evidence: 'seen-active', promptDigest: 'a'.repeat(64), baseline: null },
  ...{ polls: 7, sentAt: null, settledAt: null, observed: { active: 7 } },
};
const LINK = 'https://code.example/pull/7';
const KNOWN = { delivery: 'accepted', evidence: 'seen-active' };

function failure(type: string, message = 'no', prLink: string | null = LINK) {
  const details = [{ job: { ...JOB, prLink }, followUp: RECEIPT }];
  return Object.assign(new Error(message), { type, details });
}

describe('the end of a follow-up', () => {
  const result = { ...JOB, status: 'completed', prLink: LINK, followUp: RECEIPT };

  it('is that of its job, or its failure, with what its receipt knows', () => {
    expect(endOfResult(result)).toEqual({ outcome: 'completed', ...KNOWN, prLink: LINK, message: null });
    for (const type of FAILURE_TYPES)
      expect(endOfFailure(failure(type))).toEqual({ outcome: type, ...KNOWN, prLink: LINK, message: 'no' });
    expect(endOfCancelled(RECEIPT)).toMatchObject({ outcome: 'cancelled', ...KNOWN });
  });

  it('says that nothing was sent only where no POST has reached the service', () => {
    const told = (sends: number) =>
      cancelledInWords({ ...RECEIPT, delivery: { verdict: 'not-sent', confirmedBy: null, sends } });
    expect(told(0)).toMatch(/cancelled\. Nothing was sent\.$/);
    // After a 429.
    expect(told(1)).toMatch(/cancelled\. The service has processed nothing\.$/);
  });

  it('is the same by its memo', () => {
    const unlinked = endOfFailure(failure('DeadlineExceeded', 'late', null));
    for (const end of [endOfResult(result), endOfFailure(failure('FollowUpRejected')), unlinked])
      expect(endOfMemo(JSON.parse(JSON.stringify(memoOfEnd(RECEIPT, end))))).toEqual(end);
  });

  it('is told by no memo without one, as of a follow-up that runs or was cancelled, or with an unknown one', () => {
    const unknown = { ...RECEIPT, outcome: 'vanished', prLink: null, message: null };
    expect([undefined, RECEIPT, unknown].map(endOfMemo)).toEqual([null, null, null]);
  });

  it('is bounded, well-formed, and has a whole link or none', () => {
    const long = 'x'.repeat(MAX_LINK_CHARACTERS + 1);
    expect(endOfResult({ ...result, prLink: long }).prLink).toBeNull();
    const { message, prLink } = endOfFailure(failure('JobNotFound', `\ud800${'x'.repeat(1_000)}`, long));
    expect(message).toHaveLength(300);
    expect(message).toMatch(/^\ufffdx+…$/);
    expect(prLink).toBeNull();
  });

  it.each([
    ['a result of another shape', endOfResult({ ...result, followUp: {} })],
    ['a job that is not at its end', endOfResult({ ...result, status: 'active' })],
    ['a failure of another type', endOfFailure(failure('TypeError'))],
    ['a failure without details', endOfFailure(Object.assign(failure('JobNotFound'), { details: [] }))],
  ])('is broken with %s', (_, end) => {
    expect(end).toMatchObject({ outcome: 'broken', delivery: null });
  });

  it('has proof that nothing was sent where its name was taken before it began', () => {
    expect(endOfConflict(true, true)).toMatchObject({ outcome: 'conflict', delivery: 'not-sent' });
    expect([endOfConflict(true, false), endOfConflict(false, true)]).toMatchObject([
      { delivery: null },
      { delivery: null },
    ]);
  });

  it('counts as a failure unless its job is completed or archived', () => {
    const fine = OUTCOMES.filter((outcome) => !isFailure({ outcome }));
    expect(fine.toSorted()).toEqual(['archived', 'completed']);
  });
});

it.each([
  ['no retry', null, []],
  ['a retry', 'unsent', ['not-sent', 'rejected']],
  ['a retry with what is unknown', 'unsent-or-unknown', ['not-sent', 'rejected', 'unknown', null]],
] as const)('an item is tried again by its receipt alone: %s', (_, again, deliveries) => {
  for (const outcome of OUTCOMES) {
    const end: End = { ...endWithoutReceipt('gone'), outcome };
    const tried = [...VERDICTS, null].filter((delivery) => mayTryAgain({ ...end, delivery }, again));
    expect(tried.toSorted()).toEqual(outcome === 'conflict' ? [] : deliveries.toSorted());
  }
});
