import { expect, it } from '@jest/globals';
import { batchWorkflowId, chunkWorkflowId, fairnessKey } from '../../src/core/ids';

// docs/workflow-id-vectors.json has many more (test/docs).
it('the workflow ids of a batch and of its chunks hold its id percent-encoded', () => {
  expect(batchWorkflowId('night/é 1')).toBe('follow-up-batch:night%2F%C3%A9%201');
  expect(chunkWorkflowId('night:1', '0123456789abcdef', 12)).toBe(
    'follow-up-batch-items:night%3A1:0123456789ab:12',
  );
});

it('the fairness key of a project is its id, or a hash of an id of more than 64 bytes', () => {
  expect(fairnessKey('x'.repeat(64))).toBe('x'.repeat(64));
  const key = fairnessKey('ü'.repeat(33));
  expect(key).toMatch(/^hash-[0-9a-f]{32}$/);
  expect(fairnessKey('ü'.repeat(34))).not.toBe(key);
});
