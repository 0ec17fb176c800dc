import { describe, expect, it } from '@jest/globals';
import { followUpNotFound, batchForgotten, endsUnreadable } from '../../../src/client/errors';
import { problemOf } from '../../../src/cli/errors';

describe('an error of a command', () => {
  it.each([
    [endsUnreadable('nightly', [1], []), 1, 'ResultsUnreadable'],
    [batchForgotten('nightly', [1]), 1, 'BatchForgotten'],
    [followUpNotFound('follow-up:a:b:c', 'default'), 2, 'NotFound'],
  ])('%s has an exit code and a type', (error, exitCode, type) => {
    expect(problemOf(error)).toMatchObject({ exitCode, type, message: error.message });
  });
});
