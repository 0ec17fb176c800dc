import { describe, expect, it } from '@jest/globals';
import { MAX_BATCH_ITEMS, batchIdProblem } from '../../../src/core/batch';
import { batchWorkflowId, pageWorkflowId } from '../../../src/core/ids';
import { MAX_WORKFLOW_ID_BYTES } from '../../../src/core/text';

describe('the workflow ids of a batch', () => {
  it('hold its id percent-encoded', () => {
    expect(batchWorkflowId('night/é 1')).toBe('follow-up-batch:night%2F%C3%A9%201');
    expect(pageWorkflowId('night:1', '0a1b2c3d', 12)).toBe('follow-up-batch:night%3A1:0a1b2c3d:page-12');
  });
});

describe('a batch id', () => {
  it.each(['b', 'x'.repeat(100), 'nightly-2026-01-31T00:00:00Z', 'é'.repeat(36), '.', '🙂'])(
    'may be %s',
    (batchId) => {
      expect(batchIdProblem(batchId)).toBeUndefined();
      expect(pageWorkflowId(batchId, 'xxxxxxxx', MAX_BATCH_ITEMS).length).toBeLessThanOrEqual(
        MAX_WORKFLOW_ID_BYTES,
      );
    },
  );

  it.each([
    [7, 'must be a text, not of type number'],
    ['', 'must not be empty'],
    ['x'.repeat(101), 'at most 100 characters; it has 101'],
    ['a\nb', 'control characters'],
    ['a\ud800', 'a lone surrogate'],
    ['é'.repeat(37), 'workflow ids of 259 bytes, and at most 255'],
  ])('is not %j', (batchId, problem) => {
    expect(batchIdProblem(batchId)).toContain(problem);
  });
});
