import { describe, expect, it } from '@jest/globals';
import {
  describeCancellation,
  type RecordedOutcome,
  createCancelledOutcome,
  createConflictOutcome,
  outcomeFromFailure,
  outcomeFromMemo,
  outcomeFromResult,
  createOutcomeWithoutReceipt,
  isFailure,
  shouldRetry,
  toOutcomeMemo,
  OUTCOMES,
} from '../../src/contract/outcome';
import { FAILURE_TYPES, VERDICTS } from '../../src/contract/result';
import { MAX_LINK_CHARACTERS } from '../../src/contract/text';
import { JOB, RECEIPT } from '../harness/fixtures';

const LINK = 'https://code.example/pull/7';
const KNOWN = { delivery: 'accepted', evidence: 'seen-active' };

function failure(type: string, message = 'no', prLink: string | null = LINK) {
  const details = [{ job: { ...JOB, prLink }, receipt: RECEIPT }];
  return Object.assign(new Error(message), { type, details });
}

describe('the end of a follow-up', () => {
  const result = { ...JOB, status: 'completed', prLink: LINK, receipt: RECEIPT };

  it('is that of its job, or its failure, with what its receipt knows, and is the same by its memo', () => {
    const ends = [
      outcomeFromResult(result),
      ...FAILURE_TYPES.map((type) => outcomeFromFailure(failure(type))),
    ];
    const failed = FAILURE_TYPES.map((outcome) => ({ outcome, ...KNOWN, prLink: LINK, message: 'no' }));
    expect(ends).toEqual([{ outcome: 'completed', ...KNOWN, prLink: LINK, message: null }, ...failed]);
    for (const end of [...ends, outcomeFromFailure(failure('DeadlineExceeded', 'late', null))])
      expect(outcomeFromMemo(JSON.parse(JSON.stringify(toOutcomeMemo(RECEIPT, end))))).toEqual(end);
    // As of one that runs or was cancelled.
    const unknown = { ...RECEIPT, outcome: 'vanished', prLink: null, message: null };
    expect([undefined, RECEIPT, unknown].map(outcomeFromMemo)).toEqual([null, null, null]);
    expect(createCancelledOutcome(RECEIPT)).toMatchObject({ outcome: 'cancelled', ...KNOWN });
  });

  it('says that nothing was sent only where no POST has reached the service', () => {
    const told = (sends: number) =>
      describeCancellation({ ...RECEIPT, delivery: { verdict: 'not-sent', confirmedBy: null, sends } });
    expect(told(0)).toMatch(/cancelled\. Nothing was sent\.$/);
    // After a 429.
    expect(told(1)).toMatch(/cancelled\. The agent service did not process the message\.$/);
  });

  it('is bounded, well-formed, and has a whole link or none', () => {
    const long = 'x'.repeat(MAX_LINK_CHARACTERS + 1);
    const { message, prLink } = outcomeFromFailure(
      failure('JobNotFound', `\ud800${'x'.repeat(1_000)}`, long),
    );
    expect(message).toHaveLength(300);
    expect(message).toMatch(/^\ufffdx+…$/);
    expect([prLink, outcomeFromResult({ ...result, prLink: long }).prLink]).toEqual([null, null]);
  });

  it('is broken where it has another shape, type or status', () => {
    for (const end of [
      outcomeFromResult({ ...result, receipt: {} }),
      outcomeFromResult({ ...result, status: 'active' }),
      outcomeFromFailure(failure('TypeError')),
      outcomeFromFailure(Object.assign(failure('JobNotFound'), { details: [] })),
    ])
      expect(end).toMatchObject({ outcome: 'unreadable', delivery: null });
  });

  it('has proof that nothing was sent where its name was taken before it began', () => {
    const deliveries = [
      createConflictOutcome(true, true),
      createConflictOutcome(true, false),
      createConflictOutcome(false, true),
    ];
    expect(deliveries.map(({ delivery }) => delivery)).toEqual(['not-sent', null, null]);
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
    const end: RecordedOutcome = { ...createOutcomeWithoutReceipt('missing'), outcome };
    const tried = [...VERDICTS, null].filter((delivery) => shouldRetry({ ...end, delivery }, again));
    expect(tried.toSorted()).toEqual(outcome === 'conflict' ? [] : deliveries.toSorted());
  }
});
