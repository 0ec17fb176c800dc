import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { requests } from '../../docs/requests.json';
import { requestSchema, SCHEMA_FILE } from '../../scripts/request-docs';
import { checkRequest } from '../../src/core/check-request';
import { problemText } from '../../src/core/checks';

const text = readFileSync(SCHEMA_FILE, 'utf8');
const published = z.fromJSONSchema(JSON.parse(text) as Parameters<typeof z.fromJSONSchema>[0]);

/** Rules of one request that need two of its fields, which a schema can't say. */
const BEYOND_A_SCHEMA = [
  'a requestId that the workflow id is not made of',
  'a deadline that is not more than confirm',
  'a maximum below the initial interval',
];

describe.each(requests)('$name', ({ name, problem, request }) => {
  const accepted = problem === null;

  it(`is ${accepted ? 'accepted' : 'refused'} by the workflow`, () => {
    const checked = checkRequest(request, 'any-id');
    const words = checked.ok ? 'accepted' : checked.problems.map((each) => problemText(each)).join('; ');
    expect(words).toContain(accepted ? 'accepted' : `${problem}: `);
  });

  it('is judged by docs/request.schema.json as by the workflow', () => {
    const known = accepted || BEYOND_A_SCHEMA.includes(name);
    expect(published.safeParse(request).success).toBe(known);
  });
});

it('docs/request.schema.json is made of the table of request fields', () => {
  // Run `npm run docs` after a change of the table.
  expect(JSON.parse(text)).toEqual(requestSchema());
});
