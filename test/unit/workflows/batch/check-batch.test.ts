import { describe, expect, it } from '@jest/globals';
import { checkBatch, pageProblems } from '../../../../src/workflows/batch/check-batch';

const handedOver = { items: 3, pages: 1 };

const digest = 'a'.repeat(64);

function item(key: unknown, request: object = {}) {
  const whole = { projectId: 'p', jobId: 'j', prompt: 'Rebase.', ...request };
  return { key, request: whole, promptDigest: digest };
}

function problemsOf(input: unknown): readonly string[] {
  const checked = checkBatch(input, 'nightly');
  return 'problems' in checked ? checked.problems : [];
}

describe('the input of a batch', () => {
  it('has defaults, and its id from its workflow where it names none', () => {
    expect(checkBatch({ handedOver }, 'nightly')).toEqual({
      plan: {
        batchId: 'nightly',
        concurrency: 50,
        tolerate: null,
        items: undefined,
        handedOver,
        earlier: [],
        again: null,
      },
    });
  });

  it.each([
    ['text', 'input'],
    [{}, 'items'],
    [{ items: [item('a')], handedOver }, 'items'],
    [{ items: { length: 1 } }, 'items'],
    [{ handedOver: { items: 20_000, pages: 5_001 } }, 'handedOver'],
    [{ handedOver, earlier: [{ run: 'r', pages: [[1]] }] }, 'earlier'],
    [{ handedOver, earlier: [{ run: '\ud800', pages: [] }] }, 'earlier'],
    [{ handedOver, again: 'all' }, 'again'],
    [{ handedOver, batchId: '\ud800' }, 'batchId'],
    [{ items: [] }, 'items'],
    [{ handedOver: { items: 0, pages: 1 } }, 'handedOver'],
    [{ handedOver: { items: 1.5, pages: 1 } }, 'handedOver'],
    [{ handedOver, concurrency: 0 }, 'concurrency'],
    [{ handedOver, concurrency: 1_001 }, 'concurrency'],
    [{ handedOver, tolerate: { items: -1 } }, 'tolerate'],
    [{ handedOver, tolerate: { percent: 101 } }, 'tolerate'],
    [{ handedOver, tolerate: '5%' }, 'tolerate'],
    [{ handedOver, batchId: '' }, 'batchId'],
    [{ handedOver, batchId: 7 }, 'batchId'],
  ])('%j is refused for its %s', (input, field) => {
    expect(problemsOf(input)).toEqual([expect.stringMatching(new RegExp(`^${field}: `))]);
  });
});

describe('the items of a batch', () => {
  it('that a client has checked are taken', () => {
    expect(problemsOf({ items: [item('a'), item('b'), item(null, { requestId: 'mine' })] })).toEqual([]);
  });

  it.each([
    ['no object', 'text', /^item 1: must be an object, not of type string/],
    ['empty', {}, /^item 1: request: must be an object, not absent/],
    ['a plain request', { projectId: 'p', jobId: 'j', prompt: 'x' }, /^item 1: request: must be an object/],
    ['without a name', item(null), /^item 1: key: must be a text/],
    [
      'with half a character',
      item('a', { jobId: '\ud800' }),
      /^item 1: jobId: must not hold a lone surrogate/,
    ],
    ['with half a character for a key', item('\ud800'), /^item 1: key: must be a text/],
    ['with another field', item('a', { projct: 'p' }), /^item 1: "projct": is not a field here/],
    ['with a number for a job', item('a', { jobId: 7 }), /^item 1: jobId: must be a text/],
    ['without a digest', { ...item('a'), promptDigest: 'x' }, /^item 1: promptDigest: must be the SHA-256/],
  ])('are refused where one is %s', (_, bad, problem) => {
    expect(problemsOf({ items: [bad] })).toEqual([expect.stringMatching(problem)]);
  });

  it('are refused where two are the same follow-up', () => {
    expect(problemsOf({ items: [item('a'), item('a')] })).toEqual([
      expect.stringMatching(/^item 2: is the same/),
    ]);
  });

  it('are told of twenty at a time', () => {
    const problems = problemsOf({ items: Array(50).fill({}) });
    expect(problems).toHaveLength(21);
    expect(problems.at(-1)).toBe('… and 30 more');
  });

  it('of a page are checked in the same way', () => {
    const page = { number: 1, after: null, followedBy: false, items: [item('a')] };
    const input = { batchWorkflowId: 'follow-up-batch:b', batchId: 'b', run: 'r', page };
    expect(pageProblems(input)).toEqual([]);
    for (const bad of [undefined, {}, { ...input, page: {} }, { ...input, page: { ...page, items: [{}] } }]) {
      expect(pageProblems(bad).length).toBeGreaterThan(0);
    }
  });
});
