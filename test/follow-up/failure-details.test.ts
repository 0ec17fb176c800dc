import { expect, it } from '@jest/globals';
import { problemTexts } from '../../src/contract/checks';
import {
  createInvalidRequestParts,
  toEndMessage,
  toFailureParts,
  toOutcomeName,
} from '../../src/follow-up/failure-details';
import { toReceipt } from '../../src/follow-up/receipt';
import type { FollowUpEnd } from '../../src/follow-up/step';
import { accepted, afterSend, httpFailure, job, ms, posted, REJECTED, RUN_ID, unsent } from './states';

const RESULT: FollowUpEnd = { kind: 'result', job: job('completed'), evidence: 'unchanged' };
const CANCELLED: FollowUpEnd = { kind: 'cancelled' };
const FAILURE = {
  kind: 'failure',
  type: 'FollowUpRejected',
  reason: 'http 422.',
  cause: httpFailure(422, { serviceMessage: 'no prompt' }),
} as const satisfies FollowUpEnd;

it('the failure of a follow-up has the reason, the delivery, the job, the receipt and the response', () => {
  const state = afterSend(posted(REJECTED));
  const receipt = toReceipt(state, ms(100));
  const details = { job: state.job, receipt, httpStatus: 422, serviceMessage: 'no prompt' };
  const message = 'http 422. The message was rejected.';
  expect(toFailureParts(FAILURE, state.job, receipt)).toEqual({ type: 'FollowUpRejected', message, details });
  // A field with the value undefined would not be the same, because some data converters write it as null.
  expect(toFailureParts({ ...FAILURE, cause: null }, null, receipt).details).toStrictEqual({
    job: null,
    receipt,
  });
});

it.each([
  ['a result', RESULT, 'completed', null],
  ['a failure', FAILURE, 'FollowUpRejected', 'http 422. The message was rejected.'],
  ['a cancellation', CANCELLED, 'cancelled', 'The follow-up was cancelled. The message was rejected.'],
])('the name and the message of %s are in lists', (_, outcome, name, message) => {
  expect(toOutcomeName(outcome)).toBe(name);
  expect(toEndMessage(outcome, afterSend(posted(REJECTED)))).toBe(message);
});

it('the message of a follow-up that ends has at most one line', () => {
  expect(toEndMessage({ ...FAILURE, reason: 'http 422:\nno.' }, unsent())).not.toContain('\n');
  expect(toEndMessage(CANCELLED, accepted('completed'))).toMatch(
    /The message was accepted\. The agent continues\.$/,
  );
});

it.each([
  [false, 'not-sent', 0, 'Nothing was sent.'],
  [true, 'unknown', 1, 'It is unknown whether the message arrived.'],
])(
  'the failure of an invalid request in a run that a reset made (%j) has the delivery %s',
  (isReset, verdict, sends, text) => {
    const problems = [{ field: 'jobId', text: 'must be a text' }];
    const run = { startedAt: 0, firstRunId: RUN_ID, isReset };
    const parts = createInvalidRequestParts(problems, 'w', run, ms(5));
    expect(parts.type).toBe('InvalidRequest');
    expect(parts.message).toBe(`${text} Invalid request: ${problemTexts(problems)}.`);
    expect(parts.details).toEqual({
      job: null,
      receipt: {
        ...{
          requestId: 'w',
          delivery: { verdict, confirmedBy: null, sends },
          evidence: null,
          baseline: null,
        },
        ...{
          promptDigest: null,
          polls: 0,
          sentAt: null,
          endedAt: '1970-01-01T00:00:05.000Z',
          responseCounts: {},
        },
      },
    });
  },
);
