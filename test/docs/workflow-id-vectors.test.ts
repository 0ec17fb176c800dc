import { describe, expect, it } from '@jest/globals';
import { vectors } from '../../docs/workflow-id-vectors.json';
import { followUpWorkflowId } from '../../src/core/ids';

// The vectors were made with Python's urllib.parse.quote(part, safe=''), not with the function that they check.
describe('docs/workflow-id-vectors.json', () => {
  it.each(vectors)('$workflowId', ({ projectId, jobId, requestId, workflowId }) => {
    expect(followUpWorkflowId(projectId, jobId, requestId)).toBe(workflowId);
  });
});
