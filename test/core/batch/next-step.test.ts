import { expect, it } from '@jest/globals';
import { nextStepOfBatch } from '../../../src/core/batch/workflows';

it.each([
  ['done', {}, '`batch results`'],
  ['done', { FollowUpRejected: 2 }, '`batch retry` sends what was not sent'],
  ['tolerance-exceeded', { FollowUpRejected: 2 }, '`batch retry` sends what was not sent'],
  ['cancelled', {}, '`batch run` with the same file'],
] as const)('what to do with a batch that is %s, with the failures %j', (state, byFailure, words) => {
  expect(nextStepOfBatch(state, byFailure)).toContain(words);
});
