import { expect, it } from '@jest/globals';
import { endOfError, endOfResult } from '../../src/cli/ends';
import {
  ConflictError,
  DeadlineExceededError,
  DeliveryUnknownError,
  FollowUpError,
  FollowUpRejectedError,
  InvalidRequestError,
  JobNotFoundError,
} from '../../src/client';
import { followUpFailed, notFound } from '../../src/client/errors';
import { ItemsGoneError } from '../../src/temporal/batch-items';
import { JOB, RECEIPT } from '../harness/samples';

it('a result is printed with its evidence and delivery, and the link in full, and has the exit code of its status', () => {
  const prLink = 'https://code.example/pull/7';
  const source = { repository: 'docs', ref: 'main' };
  const ends = ['completed', 'archived', 'failed'].map((status) =>
    endOfResult('follow-up:p:j:r', { ...JOB, status, source, model: 'm', prLink, followUp: RECEIPT }),
  );
  expect(ends.map(({ exitCode }) => exitCode)).toEqual([0, 10, 11]);
  expect(ends[0]?.text.split('\n')).toEqual([
    'status    completed',
    `prLink    ${prLink}`,
    'job       j',
    'source    docs @ main',
    'model     m',
    'delivery  accepted by response, 1 send',
    'evidence  seen-active',
    'polls     7 (active × 6, completed × 1)',
    'workflow  follow-up:p:j:r',
  ]);
});

it.each([
  ['InvalidRequest', 2, FollowUpError, 'INVALID_REQUEST'],
  ['FollowUpRejected', 20, FollowUpRejectedError, 'REJECTED'],
  ['DeliveryUnknown', 21, DeliveryUnknownError, 'DELIVERY_UNKNOWN'],
  ['JobNotFound', 23, JobNotFoundError, 'JOB_NOT_FOUND'],
  ['DeadlineExceeded', 22, DeadlineExceededError, 'DEADLINE_EXCEEDED'],
] as const)('the failure %s has the exit code %i, a class and a code', (type, exitCode, Class, code) => {
  const error = followUpFailed(type, 'message', { workflowId: 'w' });
  expect(error).toMatchObject({ code, workflowId: 'w', job: null, receipt: null });
  expect(error.constructor).toBe(Class);
  expect(endOfError(error)).toMatchObject({ exitCode, document: { type } });
});

it('what to do about a rejected one is what works', () => {
  const delivery = { verdict: 'not-sent', confirmedBy: null, sends: 0 } as const;
  const details = { job: null, followUp: { ...RECEIPT, delivery } };
  const { text } = endOfError(followUpFailed('FollowUpRejected', 'message', { workflowId: 'w', details }));
  expect(text).toMatch(/^ +what to do +mend the cause; then the starter's `retry` sends the message\. /m);
});

it.each<[FollowUpError, number, string]>([
  [new FollowUpError('CANCELLED', 'message'), 24, 'Cancelled'],
  [new FollowUpError('TERMINATED', 'message'), 1, 'Terminated'],
  [new ItemsGoneError('nightly'), 1, 'BatchForgotten'],
  [new ConflictError('CONFLICT', 'message'), 2, 'Conflict'],
  [notFound('follow-up', 'follow-up:a:b:c', 'default'), 2, 'NotFound'],
])('an error of a command has an exit code and a type: %s', (error, exitCode, type) => {
  expect(endOfError(error)).toMatchObject({ exitCode, document: { type, message: error.message } });
});

it('of the problems of an input a hundred are told, and their number', () => {
  const problems = Array.from({ length: 150 }, (_, line) => ({ field: `line ${line}`, text: 'is wrong' }));
  const { text } = endOfError(new InvalidRequestError(problems));
  expect(text.split('\n')).toHaveLength(102);
  expect(text).toMatch(/line 99: is wrong\n {2}… and 50 more$/);
});
