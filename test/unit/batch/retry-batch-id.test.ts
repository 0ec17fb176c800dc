import { describe, expect, it } from '@jest/globals';
import { retryBatchId } from '../../../src/client';
import { batchIdProblem } from '../../../src/contract/batch-id';

describe('the id of a retry', () => {
  it('counts on from the batch that it tries again', () => {
    expect(retryBatchId('nightly')).toBe('nightly-retry-1');
    expect(retryBatchId('nightly-retry-1')).toBe('nightly-retry-2');
    expect(retryBatchId('nightly-retry-9')).toBe('nightly-retry-10');
  });

  // The second is percent-encoded to nine times its length.
  it.each(['x', '日'])(
    'is one, and counts on, where the id of the batch is as many %s as it may be',
    (character) => {
      let longest = character;
      while (batchIdProblem(longest + character) === undefined) longest += character;
      longest += 'x'.repeat(8);
      while (batchIdProblem(longest) !== undefined) longest = longest.slice(0, -1);
      const first = retryBatchId(longest);
      expect(first).toMatch(/^[0-9a-f]{20}-retry-1$/);
      expect(retryBatchId(first)).toBe(first.replace(/1$/, '2'));
      expect(retryBatchId(longest.slice(1))).not.toBe(first);
    },
  );
});
