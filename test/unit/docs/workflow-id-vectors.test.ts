import { describe, expect, it } from '@jest/globals';
import { vectors } from '../../../docs/workflow-id-vectors.json';
import { checkRequest } from '../../../src/core/check-request';
import { followUpWorkflowId } from '../../../src/core/ids';

// The vectors were made with Python's urllib.parse.quote(part, safe=''), not with the function that they check.
describe('docs/workflow-id-vectors.json', () => {
  it.each(vectors)('$workflowId', ({ projectId, jobId, requestId, workflowId }) => {
    expect(followUpWorkflowId(projectId, jobId, requestId)).toBe(workflowId);
  });

  it.each(vectors)('the workflow accepts $workflowId', ({ workflowId, ...ids }) => {
    expect(checkRequest({ ...ids, prompt: 'Fix the links.' }, workflowId)).toMatchObject({ ok: true });
  });

  it('holds every kind of character that encoders differ in', () => {
    const all = vectors.map(({ workflowId }) => workflowId).join();
    for (const encoded of ['%20', '%2B', '%2F', '%3A', '%2A', '%27', '%21', '%28', '%29', '%25', '%F0'])
      expect(all).toContain(encoded);
    expect(all).toContain('-._~');
  });
});
