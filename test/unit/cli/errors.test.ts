import { describe, expect, it } from '@jest/globals';
import { BatchForgottenError, EndsUnreadableError, FollowUpNotFoundError } from '../../../src/client';
import { problemOf } from '../../../src/cli/errors';

describe('an error of a command', () => {
  it.each([
    [new EndsUnreadableError('nightly', [1], []), 1, 'EndsUnreadable'],
    [new BatchForgottenError('nightly', [1]), 1, 'BatchForgotten'],
    [new FollowUpNotFoundError('follow-up:a:b:c', 'default'), 2, 'NotFound'],
  ])('%s has an exit code and a type', (error, exitCode, type) => {
    expect(problemOf(error)).toMatchObject({ exitCode, type, message: error.message });
  });
});
