import { expect, it } from '@jest/globals';
import {
  toBatchId,
  batchWorkflowId,
  chunkWorkflowId,
  fairnessKey,
  followUpWorkflowId,
  jobKeyFromWorkflowId,
  jobLockWorkflowId,
} from '../../src/contract/ids';
import { keywordAttribute } from '../../src/contract/follow-up-start-options';
import type { KeywordName } from '../../src/contract/names';

// test/docs/published.test.ts checks the IDs of follow-ups with docs/workflow-id-vectors.json.
it('the workflow IDs of a batch and of its chunks have the unchanged batch ID', () => {
  for (const batchId of ['night é 1', 'a%20b'])
    expect([batchId, batchWorkflowId(batchId)].map(toBatchId)).toEqual([batchId, batchId]);
  expect(batchWorkflowId('night é 1')).toBe('follow-up-batch:night é 1');
  expect(chunkWorkflowId('night:1', '0123456789abcdef', 12)).toBe(
    'follow-up-batch-items:night:1:0123456789ab:12',
  );
});

it('the job lock workflow ID has the percent-encoded project and job, or their digest if the ID would be too long', () => {
  expect(jobLockWorkflowId('docs/é', 'j:1')).toBe('follow-up-job-lock:docs%2F%C3%A9:j%3A1');
  expect(jobLockWorkflowId('x'.repeat(128), 'y'.repeat(107))).toHaveLength(255);
  const digest = jobLockWorkflowId('x'.repeat(128), 'y'.repeat(108));
  expect(digest).toMatch(/^follow-up-job-lock:[0-9a-f]{64}$/);
  expect(jobLockWorkflowId('x'.repeat(128), 'y'.repeat(109))).not.toBe(digest);
});

const uuid = '0f8fad5b-d9cb-469f-a165-70867728950e';

it('two spellings of one UUID have the same workflow ID, job key and search attribute, and other IDs do not', () => {
  const other = uuid.toUpperCase();
  expect(followUpWorkflowId(other, other, other)).toBe(`follow-up:${uuid}:${uuid}:${uuid}`);
  expect(followUpWorkflowId('DOCS', 'JOB', 'R')).toBe('follow-up:DOCS:JOB:R');
  const keyOf = (jobId: string) => jobKeyFromWorkflowId(followUpWorkflowId('docs/é', jobId, 'r'));
  expect(keyOf(uuid.toUpperCase())).toBe(keyOf(uuid));
  expect(keyOf('JOB')).not.toBe(keyOf('job'));
  const valueOf = (name: KeywordName, text: string) => keywordAttribute(name, text).value;
  expect(valueOf('AgentJob', uuid.toUpperCase())).toBe(uuid);
  expect(valueOf('AgentProject', uuid.toUpperCase())).toBe(uuid);
  expect(valueOf('FollowUpBatch', uuid.toUpperCase())).toBe(uuid.toUpperCase());
});

it('two spellings of one UUID have the same job lock, and two spellings of any other ID do not', () => {
  expect(jobLockWorkflowId('docs', uuid.toUpperCase())).toBe(jobLockWorkflowId('docs', uuid));
  expect(jobLockWorkflowId('docs', 'JOB')).not.toBe(jobLockWorkflowId('docs', 'job'));
});

it('the fairness key of a project is its ID, or a hash if the ID has more than 64 bytes', () => {
  expect(fairnessKey('x'.repeat(64))).toBe('x'.repeat(64));
  const key = fairnessKey('ü'.repeat(33));
  expect(key).toMatch(/^hash-[0-9a-f]{32}$/);
  expect(fairnessKey('ü'.repeat(34))).not.toBe(key);
  const uuid = 'B6B7E2F4-0D5C-4B6E-9B64-7B3D8E9E1A10';
  expect([fairnessKey(uuid), fairnessKey('Docs')]).toEqual([uuid.toLowerCase(), 'Docs']);
});
