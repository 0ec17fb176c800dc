import { expect, it } from '@jest/globals';
import {
  ConflictError,
  FollowUpError,
  type FollowUpErrorCode,
  FollowUpRejectedError,
  hasCode,
  InvalidRequestError,
  WaitTimeoutError,
} from '../../src/entries/client';
import { invalidFieldError } from '../../src/client/errors';

/*
 * The functions below are usual ways to handle an error. `tsc` checks them: each branch uses the type that it needs. In a branch in which
 * the error had the type `never`, the use of `error.code` would not compile.
 */

function describeWithCodes(error: unknown): string {
  if (error instanceof FollowUpError) {
    if (hasCode(error, 'CONFLICT')) {
      const code: 'CONFLICT' = error.code;
      return code;
    }
    if (!hasCode(error, 'WAIT_TIMEOUT', 'START_UNCONFIRMED')) return `other ${error.code}`;
    const code: 'WAIT_TIMEOUT' | 'START_UNCONFIRMED' = error.code;
    return `${code} ${error.workflowId ?? ''}`;
  }
  return 'foreign';
}

function describeWithClasses(error: unknown): string {
  if (!(error instanceof FollowUpError)) return 'foreign';
  if (error instanceof InvalidRequestError) return error.problems.map(({ field }) => field).join();
  if (error instanceof ConflictError || error instanceof FollowUpRejectedError) {
    const code: 'CONFLICT' | 'REJECTED' = error.code;
    return code;
  }
  return error instanceof WaitTimeoutError
    ? `${error.code} ${error.workflowId ?? ''}`
    : `other ${error.code}`;
}

function describeWithSwitch(error: FollowUpError): string {
  switch (error.code) {
    case 'CONFLICT':
      return error.code;
    case 'WAIT_TIMEOUT':
    case 'START_UNCONFIRMED':
      return `${error.code} ${error.workflowId ?? ''}`;
    default: {
      const rest: Exclude<FollowUpErrorCode, 'CONFLICT' | 'WAIT_TIMEOUT' | 'START_UNCONFIRMED'> = error.code;
      return `other ${rest}`;
    }
  }
}

function describeUnknown(error: unknown): string {
  if (hasCode(error, 'NOT_FOUND')) return error.code;
  return error instanceof Error ? error.message : String(error);
}

it('the usual ways to handle an error compile, and each code and class narrows the error in both branches', () => {
  const conflict = new ConflictError('CONFLICT', 'another prompt');
  const timeout = new WaitTimeoutError('WAIT_TIMEOUT', 'no response', { workflowId: 'w' });
  const closed = new FollowUpError('CLIENT_CLOSED', 'the client was closed');
  const describeAll = (describe: (error: FollowUpError) => string) =>
    [conflict, timeout, closed].map(describe);
  const expected = ['CONFLICT', 'WAIT_TIMEOUT w', 'other CLIENT_CLOSED'];
  for (const describe of [describeWithCodes, describeWithClasses, describeWithSwitch])
    expect(describeAll(describe)).toEqual(expected);
  expect(describeWithClasses(invalidFieldError('timeout', 'is wrong'))).toBe('timeout');
  expect([describeWithCodes, describeWithClasses].map((describe) => describe('text'))).toEqual([
    'foreign',
    'foreign',
  ]);
  expect(describeUnknown(conflict)).toBe('another prompt');
});

it('the declaration of a code in a subclass does not remove the code', () => {
  expect(Object.keys(new ConflictError('CONFLICT', 'another prompt'))).toContain('code');
});
