import { expect, it } from '@jest/globals';
import { endOfError, endOfResult } from '../../src/cli/ends';
import {
  ConflictError,
  DeadlineExceededError,
  DeliveryUnknownError,
  FollowUpError,
  FollowUpRejectedError,
  type FollowUpResult,
  JobNotFoundError,
} from '../../src/client';
import { followUpFailed, notFound } from '../../src/client/errors';
import { FAILURE_TYPES, type Receipt } from '../../src/core/result';
import { ItemsGoneError } from '../../src/temporal/batch-items';
import { JOB } from '../harness/samples';

const RECEIPT: Receipt = {
  requestId: 'r',
  delivery: { verdict: 'accepted', confirmedBy: 'response', sends: 1 },
  evidence: 'seen-active',
  promptDigest: 'a'.repeat(64),
  baseline: { status: 'completed', prLink: null, archivedAt: null },
  polls: 7,
  sentAt: '2030-01-01T00:00:00.000Z',
  settledAt: '2030-01-01T00:01:00.000Z',
  observed: { active: 6, completed: 1 },
};

function result(status: string): FollowUpResult {
  const source = { repository: 'docs', ref: 'main' };
  const prLink = 'https://code.example/pull/7';
  return { ...JOB, id: 'job-1', status, source, model: 'm', prLink, followUp: RECEIPT };
}

it.each([
  ['completed', 0],
  ['archived', 10],
  ['failed', 11],
])('the exit code of a job that is %s is %d', (status, code) => {
  expect(endOfResult('w', result(status)).exitCode).toBe(code);
});

it('the exit code of each failure is the documented one, as are its class and code', () => {
  const ends = FAILURE_TYPES.map((type) => {
    const error = followUpFailed(type, 'message', { workflowId: 'w' });
    expect(error).toMatchObject({ workflowId: 'w', job: null, receipt: null });
    expect(endOfError(error).document).toMatchObject({ type });
    return [type, endOfError(error).exitCode, error.constructor, error.code];
  });
  expect(ends).toEqual([
    ['InvalidRequest', 2, FollowUpError, 'INVALID_REQUEST'],
    ['FollowUpRejected', 20, FollowUpRejectedError, 'REJECTED'],
    ['DeliveryUnknown', 21, DeliveryUnknownError, 'DELIVERY_UNKNOWN'],
    ['JobNotFound', 23, JobNotFoundError, 'JOB_NOT_FOUND'],
    ['DeadlineExceeded', 22, DeadlineExceededError, 'DEADLINE_EXCEEDED'],
  ]);
});

it('what is printed of a result are the job, the evidence and the delivery, and the link in full', () => {
  expect(endOfResult('follow-up:p:j:r', result('completed')).text.split('\n')).toEqual([
    'status    completed',
    'prLink    https://code.example/pull/7',
    'job       job-1',
    'source    docs @ main',
    'model     m',
    'delivery  accepted by response, 1 send',
    'evidence  seen-active',
    'polls     7 (active × 6, completed × 1)',
    'workflow  follow-up:p:j:r',
  ]);
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
