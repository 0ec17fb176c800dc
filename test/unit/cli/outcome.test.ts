import { describe, expect, it } from '@jest/globals';
import { outcomeOfEnd, outcomeOfResult } from '../../../src/cli/render/outcome';
import {
  FollowUpCancelledError,
  FollowUpFailedError,
  FollowUpTerminatedError,
  type FollowUpResult,
} from '../../../src/client';
import { FAILURE_TYPES, type Receipt } from '../../../src/core/result';

const RECEIPT: Receipt = {
  requestId: 'r',
  delivery: { verdict: 'accepted', confirmedBy: 'response', sends: 1 },
  evidence: 'seen-active',
  baseline: { status: 'completed', prLink: null, archivedAt: null },
  polls: 7,
  sentAt: '2030-01-01T00:00:00.000Z',
  settledAt: '2030-01-01T00:01:00.000Z',
  observed: { active: 6, completed: 1 },
};

function result(status: string): FollowUpResult {
  return {
    id: 'job-1',
    status,
    source: { repository: 'docs', ref: 'main' },
    model: 'm',
    prLink: 'https://code.example/pull/7',
    createdAt: null,
    archivedAt: null,
    followUp: RECEIPT,
  };
}

describe('the exit code', () => {
  it.each([
    ['completed', 0],
    ['archived', 10],
    ['failed', 11],
  ])('of a job that is %s is %d', (status, code) => {
    expect(outcomeOfResult('w', result(status)).exitCode).toBe(code);
  });

  it('of each failure is the documented one', () => {
    const codes = FAILURE_TYPES.map((type) => {
      const details = { job: null, followUp: RECEIPT };
      return [type, outcomeOfEnd(new FollowUpFailedError('w', type, 'message', details)).exitCode];
    });
    expect(codes).toEqual([
      ['InvalidRequest', 2],
      ['FollowUpRejected', 20],
      ['DeliveryUnknown', 21],
      ['JobNotFound', 23],
      ['DeadlineExceeded', 22],
    ]);
  });

  it('of a cancelled one is 24, of a terminated one 1', () => {
    expect(outcomeOfEnd(new FollowUpCancelledError('w', RECEIPT)).exitCode).toBe(24);
    expect(outcomeOfEnd(new FollowUpTerminatedError('w', 'by hand')).exitCode).toBe(1);
  });
});

describe('what is printed', () => {
  it('of a result are the job, the evidence and the delivery, and the link in full', () => {
    expect(outcomeOfResult('follow-up:p:j:r', result('completed')).text.split('\n')).toEqual([
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

  it('of a result as JSON is exactly the result', () => {
    expect(outcomeOfResult('w', result('completed')).document).toEqual(result('completed'));
  });

  it('of a failure as JSON are type, message and details', () => {
    const details = { job: null, followUp: RECEIPT, httpStatus: 403, serviceMessage: 'read-only key' };
    const outcome = outcomeOfEnd(new FollowUpFailedError('w', 'FollowUpRejected', 'Refused.', details));
    expect(outcome.document).toEqual({
      type: 'FollowUpRejected',
      message: 'Refused.',
      details,
      workflowId: 'w',
    });
    expect(outcome.text).toMatch(/^FollowUpRejected: Refused\.\n.*403\n.*read-only key\n/s);
    expect(outcome.isResult).toBe(false);
  });

  it('of a cancelled one says what became of the message', () => {
    expect(outcomeOfEnd(new FollowUpCancelledError('w', RECEIPT)).text).toContain('the agent itself goes on');
    expect(outcomeOfEnd(new FollowUpCancelledError('w', null)).text).toContain('left no receipt');
  });
});
