import { expect, it } from '@jest/globals';
import { z } from 'zod';
import schema from '../../docs/request.schema.json';
import { requests } from '../../docs/requests.json';
import { vectors } from '../../docs/workflow-id-vectors.json';
import { checkRequest } from '../../src/contract/check-request';
import { problemText } from '../../src/contract/checks';
import { followUpWorkflowId } from '../../src/contract/ids';

const published = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);

/** Rules of one request that need two of its fields, which a schema can't say. */
const BEYOND_A_SCHEMA = [
  'a requestId that the workflow id is not made of',
  'a deadline that is not longer than maxStaleness',
  'a maximum below the initial interval',
];

it.each(requests)(
  'docs/requests.json: $name: workflow and schema judge as it says',
  ({ name, problem, request }) => {
    const checked = checkRequest(request, 'any-id');
    const words = checked.ok ? 'accepted' : checked.problems.map((each) => problemText(each)).join('; ');
    expect(words).toContain(problem === null ? 'accepted' : `${problem}: `);
    const isGood = problem === null || BEYOND_A_SCHEMA.includes(name);
    expect(published.safeParse(request).success).toBe(isGood);
  },
);

// The vectors were made with Python's urllib.parse.quote(part, safe=''), not with the function that they check.
it.each(vectors)('docs/workflow-id-vectors.json: $workflowId', (vector) => {
  expect(followUpWorkflowId(vector.projectId, vector.jobId, vector.requestId)).toBe(vector.workflowId);
});
