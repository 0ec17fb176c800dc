import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { checkRequest } from '../../src/contract/check-request';
import { problemText } from '../../src/contract/checks';
import {
  getField,
  toPlanFieldName,
  REQUEST_OPTIONS,
  type RequestOption,
  buildRequest,
} from '../../src/contract/request';

const REQUEST = { projectId: 'docs', jobId: 'job-1', prompt: 'Fix the links.', requestId: 'r1' };
const WORKFLOW_ID = 'follow-up:docs:job-1:r1';

const UTF8 =
  'must not have U+FFFD, because this character replaces bytes that are not UTF-8; send the text as UTF-8';

function problemsOf(input: unknown, workflowId?: string): readonly string[] {
  const checked = checkRequest(input, workflowId);
  return checked.ok ? [] : checked.problems.map((problem) => problemText(problem));
}

describe('checkRequest', () => {
  it('fills in every default', () => {
    const plan = {
      ...REQUEST,
      whenActive: 'wait',
      onUnknownDelivery: 'fail',
      deadlineMs: 86_400_000,
      polling: { initialMs: 5_000, growth: 0.1, maximumMs: 300_000, jitter: 0.1, timerPolls: 2 },
      reconcileTimeoutMs: 120_000,
      prLinkTimeoutMs: 30_000,
      maxStalenessMs: 30_000,
    };
    expect(checkRequest(REQUEST, WORKFLOW_ID)).toEqual({ ok: true, plan });
  });

  it.each(Object.entries<RequestOption>(REQUEST_OPTIONS))(
    'passes the option %s on to the plan',
    (field, option) => {
      const values = { duration: '4m', number: 0.25, count: 7 };
      const value = option.kind === 'choice' ? option.choices.at(-1) : values[option.kind];
      const checked = checkRequest({ ...REQUEST, ...buildRequest([[field, value]]) });
      const planned = checked.ok
        ? getField({ ...checked.plan }, toPlanFieldName(field, option))
        : checked.problems;
      expect(planned).toBe(option.kind === 'duration' ? 240_000 : value);
    },
  );

  // test/docs/published.test.ts checks the other rules with docs/requests.json.
  it.each([
    ['jobId', '\ud800', 'lone surrogate'],
    ['jobId', 'x/../../other', 'must not have the path segment "..", because a URL'],
    ['projectId', 'x\\.', 'must not have the path segment ".", because a URL'],
    ...['projectId', 'jobId', 'requestId', 'prompt'].map((name) => [name, 'caf\ufffd', UTF8]),
    ['prompt', 'é'.repeat(131_073), 'at most 262144 bytes of UTF-8; it is 262146'],
    ['projectId', '日'.repeat(30), 'the maximum is 255; shorten one of the three IDs'],
  ])('rejects %s = %j with the problem: %s', (field, value, problem) => {
    expect(problemsOf({ ...REQUEST, [field]: value })).toEqual([expect.stringContaining(problem)]);
  });

  it.each(['.', '..', '../a', 'x\\..\\y', '/'])(
    'accepts the request ID %j, because no URL has it as a path segment',
    (requestId) => {
      expect(problemsOf({ ...REQUEST, requestId })).toEqual([]);
    },
  );

  it('reports well-formed problems without control characters for any input', () => {
    const hostile = {
      whenActive: 'x'.repeat(58) + '🙂🙂\u001b[2J\u009b2J\u2028\u202e',
      '\udc00': 1,
      polling: { ['y'.repeat(59) + '🙂']: 1, initial: '\ud83d1s', timerPolls: '🙂'.repeat(40) },
    };
    const idProblems = problemsOf(REQUEST, `x${'🙂'.repeat(40)}\u0085`);
    expect(idProblems).toEqual([expect.stringContaining(`"${WORKFLOW_ID}"`)]);
    const problems = [...idProblems, ...problemsOf({ ...REQUEST, ...hostile })];
    expect(problems).toHaveLength(6);
    for (const problem of problems) {
      expect(problem.isWellFormed()).toBe(true);
      expect(problem).not.toMatch(/[\p{Cc}\u2028\u202e]/u);
    }
  });

  it('reports at most 50 of 200,000 unknown fields', () => {
    const unknownFields = Object.fromEntries(
      Array.from({ length: 200_000 }, (_, number) => [`field ${number}`, 1]),
    );
    expect(problemsOf({ ...REQUEST, ...unknownFields })).toHaveLength(50);
  });
});

it('the JSDoc of FollowUpRequest has the defaults of REQUEST_OPTIONS', () => {
  const source = readFileSync(path.join(__dirname, '../../src/contract/request.ts'), 'utf8');
  const [, types = ''] = source.split(/interface FollowUp(?:Request|Plan)/);
  for (const [field, option] of Object.entries<RequestOption>(REQUEST_OPTIONS)) {
    const name = field.replace('polling.', '');
    const documented = new RegExp(`@default ([^*]+?)\\s*\\*/\\s+readonly ${name}\\?:`).exec(types)?.[1];
    expect([field, documented?.replaceAll("'", '')]).toEqual([field, String(option.default)]);
  }
});
