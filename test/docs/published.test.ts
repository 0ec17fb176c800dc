import { expect, it } from '@jest/globals';
import { z } from 'zod';
import schema from '../../docs/request.schema.json';
import { requests } from '../../docs/requests.json';
import { vectors } from '../../docs/workflow-id-vectors.json';
import { checkRequest } from '../../src/contract/check-request';
import { problemText } from '../../src/contract/checks';
import { followUpWorkflowId } from '../../src/contract/ids';

const published = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);

/** A JSON Schema can't express these rules, because each rule compares two fields. */
const NOT_IN_SCHEMA = [
  'a requestId that the workflow id is not made of',
  'a deadline that is not longer than maxStaleness',
  'a maximum below the initial interval',
];

it.each(requests)(
  'docs/requests.json: the workflow and the schema accept or reject $name as documented',
  ({ name, problem, request }) => {
    const checked = checkRequest(request, 'any-id');
    const verdict = checked.ok ? 'accepted' : checked.problems.map((each) => problemText(each)).join('; ');
    expect(verdict).toContain(problem === null ? 'accepted' : `${problem}: `);
    const isValid = problem === null || NOT_IN_SCHEMA.includes(name);
    expect(published.safeParse(request).success).toBe(isValid);
  },
);

// The vectors were made with Python's urllib.parse.quote(part, safe=''), and not with the function that this test checks.
it.each(vectors)('followUpWorkflowId matches docs/workflow-id-vectors.json: $workflowId', (vector) => {
  expect(followUpWorkflowId(vector.projectId, vector.jobId, vector.requestId)).toBe(vector.workflowId);
});
