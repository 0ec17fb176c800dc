import { describe, expect, it } from '@jest/globals';
import { batchIdProblem, MAX_BATCH_ITEMS } from '../../src/core/batch/batch';
import { batchWorkflowId, fairnessKey, pageWorkflowId } from '../../src/core/ids';
import { MAX_WORKFLOW_ID_BYTES } from '../../src/core/text';

// docs/workflow-id-vectors.json has many more (test/docs).
it('the workflow ids of a batch and of its pages hold its id percent-encoded', () => {
  expect(batchWorkflowId('night/é 1')).toBe('follow-up-batch:night%2F%C3%A9%201');
  expect(pageWorkflowId('night:1', '0a1b2c3d', 12)).toBe('follow-up-batch:night%3A1:0a1b2c3d:page-12');
});

it('the fairness key of a project is its id, or a hash of an id of more than 64 bytes', () => {
  expect(fairnessKey('x'.repeat(64))).toBe('x'.repeat(64));
  const key = fairnessKey('ü'.repeat(33));
  expect(key).toMatch(/^hash-[0-9a-f]{32}$/);
  expect(fairnessKey('ü'.repeat(34))).not.toBe(key);
});

describe('a batch id', () => {
  it.each(['x'.repeat(100), 'nightly-2026-01-31T00:00:00Z', 'é'.repeat(36), '🙂'])('may be %s', (batchId) => {
    expect(batchIdProblem(batchId)).toBeUndefined();
    const longest = pageWorkflowId(batchId, 'xxxxxxxx', MAX_BATCH_ITEMS);
    expect(longest.length).toBeLessThanOrEqual(MAX_WORKFLOW_ID_BYTES);
  });

  it.each([
    [7, 'must be a text, not of type number'],
    ['x'.repeat(101), 'at most 100 characters; it has 101'],
    ['é'.repeat(37), 'workflow ids of 259 bytes, and at most 255'],
  ])('is not %j', (batchId, problem) => {
    expect(batchIdProblem(batchId)).toContain(problem);
  });
});
