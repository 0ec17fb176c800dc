import { describe, expect, it } from '@jest/globals';
import {
  describeCancellation,
  describeConflict,
  type RecordedOutcome,
  outcomeFromFailure,
  outcomeFromMemo,
  outcomeFromResult,
  createOutcomeWithoutReceipt,
  isFailure,
  shouldRetry,
  toOutcomeMemo,
  OUTCOMES,
} from '../../src/contract/outcome';
import { FAILURE_TYPES, type Receipt, VERDICTS } from '../../src/contract/result';
import { MAX_LINK_CHARACTERS } from '../../src/contract/text';
import { JOB, RECEIPT } from '../harness/fixtures';

const LINK = 'https://code.example/pull/7';
const KNOWN = { delivery: 'accepted', evidence: 'seen-active' };

function failure(type: string, message = 'no', prLink: string | null = LINK) {
  const details = [{ job: { ...JOB, prLink }, receipt: RECEIPT }];
  return Object.assign(new Error(message), { type, details });
}

describe('the outcome of a follow-up', () => {
  const result = { ...JOB, status: 'completed', prLink: LINK, receipt: RECEIPT };

  it('is derived from the job or the failure and the receipt, and survives a round trip through the memo', () => {
    const outcomes = [
      outcomeFromResult(result),
      ...FAILURE_TYPES.map((type) => outcomeFromFailure(failure(type))),
    ];
    const failed = FAILURE_TYPES.map((outcome) => ({ outcome, ...KNOWN, prLink: LINK, message: 'no' }));
    expect(outcomes).toEqual([{ outcome: 'completed', ...KNOWN, prLink: LINK, message: null }, ...failed]);
    for (const each of [...outcomes, outcomeFromFailure(failure('DeadlineExceeded', 'late', null))])
      expect(outcomeFromMemo(JSON.parse(JSON.stringify(toOutcomeMemo(RECEIPT, each))))).toEqual(each);
    const cancelled = createOutcomeWithoutReceipt('cancelled');
    expect(outcomeFromMemo(toOutcomeMemo(RECEIPT, cancelled))).toEqual({ ...cancelled, ...KNOWN });
    // A memo without an outcome is ignored, and so is an unknown outcome.
    const unknown = { ...RECEIPT, outcome: 'vanished', prLink: null, message: null };
    expect([undefined, RECEIPT, unknown].map(outcomeFromMemo)).toEqual([null, null, null]);
  });

  it('states that nothing was sent only if no POST reached the agent service', () => {
    const cancellationText = (sends: number) =>
      describeCancellation({ ...RECEIPT, delivery: { verdict: 'not-sent', confirmedBy: null, sends } });
    expect(cancellationText(0)).toMatch(/cancelled\. Nothing was sent\.$/);
    // The one POST received 429.
    expect(cancellationText(1)).toMatch(/cancelled\. The agent service did not process the message\.$/);
  });

  it.each<[delivery: Partial<Receipt['delivery']> | null, text: string]>([
    [null, 'The receipt is missing: the workflow history shows whether the message was sent.'],
    [{ verdict: 'rejected' }, 'The message was rejected.'],
    [
      { verdict: 'unknown' },
      'It is unknown whether the message arrived. If the message arrived, the agent continues.',
    ],
    [{ verdict: 'accepted', confirmedBy: 'response' }, 'The message was accepted. The agent continues.'],
    [
      { verdict: 'accepted', confirmedBy: 'assumed' },
      'The message is assumed to have arrived. The agent continues.',
    ],
  ])('after a cancellation with the delivery %j, states: %s', (delivery, text) => {
    const receipt = delivery && { ...RECEIPT, delivery: { ...RECEIPT.delivery, ...delivery } };
    expect(describeCancellation(receipt)).toBe(`The follow-up was cancelled. ${text}`);
  });

  it('has a well-formed message of at most 300 characters, and a complete link or null', () => {
    const long = 'x'.repeat(MAX_LINK_CHARACTERS + 1);
    const { message, prLink } = outcomeFromFailure(
      failure('JobNotFound', `\ud800${'x'.repeat(1_000)}`, long),
    );
    expect(message).toHaveLength(300);
    expect(message).toMatch(/^\ufffdx+…$/);
    expect([prLink, outcomeFromResult({ ...result, prLink: long }).prLink]).toEqual([null, null]);
    expect(outcomeFromResult({ ...result, prLink: long.slice(1) }).prLink).toBe(long.slice(1));
  });

  it('is unreadable if the result or the failure has an unexpected shape, type or status', () => {
    for (const outcome of [
      outcomeFromResult({ ...result, receipt: {} }),
      outcomeFromResult({ ...result, status: 'active' }),
      outcomeFromFailure(failure('TypeError')),
      outcomeFromFailure(Object.assign(failure('JobNotFound'), { details: [] })),
      outcomeFromFailure(Object.assign(failure('JobNotFound'), { details: undefined })),
    ])
      expect(outcome).toMatchObject({ outcome: 'unreadable', delivery: null });
  });

  it('has the message of its outcome, or the outcome itself, if no receipt can be read', () => {
    const messages = (['left-running', 'JobNotFound'] as const).map(
      (outcome) => createOutcomeWithoutReceipt(outcome).message,
    );
    expect(messages).toEqual([
      'Another client started this follow-up, so the follow-up continues.',
      'JobNotFound',
    ]);
  });

  it('names the request ID that another prompt has', () => {
    expect(describeConflict('follow-up:docs:j:my%20id')).toBe(
      'The follow-up follow-up:docs:j:my%20id exists with another prompt, so the request ID "my id" can\'t be used. ' +
        'Nothing was sent. Send a new message with a new request ID. To see the existing follow-up, use its workflow ID.',
    );
  });

  it('has no link if the failure has no job', () => {
    const details = [{ job: null, receipt: RECEIPT }];
    const outcome = outcomeFromFailure(Object.assign(failure('JobNotFound'), { details }));
    expect(outcome).toMatchObject({ outcome: 'JobNotFound', prLink: null });
  });

  it('is a failure unless the job is completed or archived', () => {
    const successful = OUTCOMES.filter((outcome) => !isFailure({ outcome }));
    expect(successful.toSorted()).toEqual(['archived', 'completed']);
  });
});

it.each([
  ['a first run', null, []],
  ['a retry', 'unsent', ['not-sent', 'rejected']],
  ['a retry with includeUnknown', 'unsent-or-unknown', ['not-sent', 'rejected', 'unknown', null]],
] as const)(
  '%s repeats an item only if its recorded delivery allows this, and never repeats a conflict',
  (_, retryScope, deliveries) => {
    for (const outcome of OUTCOMES) {
      const recorded: RecordedOutcome = { ...createOutcomeWithoutReceipt('missing'), outcome };
      const repeated = [...VERDICTS, null].filter((delivery) =>
        shouldRetry({ ...recorded, delivery }, retryScope),
      );
      expect(repeated.toSorted()).toEqual(outcome === 'conflict' ? [] : deliveries.toSorted());
    }
  },
);
