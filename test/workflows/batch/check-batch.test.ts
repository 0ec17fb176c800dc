import { describe, expect, it } from '@jest/globals';
import { ApplicationFailure } from '@temporalio/common';
import { checkBatch, checkPage } from '../../../src/workflows/batch/check-batch';

const handedOver = { items: 3, pages: 1 };

function item(key: unknown, request: object = {}) {
  const whole = { projectId: 'p', jobId: 'j', prompt: 'Rebase.', ...request };
  return { key, request: whole };
}

function problemsOf(input: unknown): readonly string[] {
  try {
    checkBatch(input, 'nightly');
    return [];
  } catch (error) {
    if (!(error instanceof ApplicationFailure)) throw error;
    const [, problems] = /^Invalid batch: (.*)\. Nothing was sent\.$/s.exec(error.message) ?? [];
    return problems?.split(/; (?=item \d+: |\w+: |… and)/) ?? [];
  }
}

describe('the input of a batch', () => {
  it('has defaults, and its id from its workflow where it names none', () => {
    const defaults = { concurrency: 50, tolerate: null, items: undefined, earlier: [], again: null };
    const checked = checkBatch({ handedOver }, 'nightly');
    expect(checked).toEqual({ batchId: 'nightly', handedOver, ...defaults });
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
    ['no object', 'text', /^item 1: must be /],
    ['empty', {}, /^item 1: must be .*the request an object/],
    ['a plain request', { projectId: 'p', jobId: 'j', prompt: 'x' }, /^item 1: .*the request an object/],
    ['without a name', item(null), /^item 1: key: must be a text/],
    ['with half a character', item('a', { jobId: '\ud800' }), /^item 1: jobId: .* a lone surrogate/],
    ['with half a character for a key', item('\ud800'), /^item 1: key: must be a text/],
    ['with another field', item('a', { projct: 'p' }), /^item 1: "projct": is not a field here/],
    ['with a number for a job', item('a', { jobId: 7 }), /^item 1: jobId: must be a text/],
  ])('are refused where one is %s', (_, bad, problem) => {
    expect(problemsOf({ items: [bad] })).toEqual([expect.stringMatching(problem)]);
  });

  it('are refused where two are the same follow-up', () => {
    const problem = expect.stringMatching(/^item 2: is the same/);
    expect(problemsOf({ items: [item('a'), item('a')] })).toEqual([problem]);
  });

  it('are told of twenty at a time', () => {
    const problems = problemsOf({ items: Array(50).fill({}) });
    expect(problems).toHaveLength(21);
    expect(problems.at(-1)).toBe('… and 30 more');
  });

  it('of a page are checked in the same way', () => {
    const page = { number: 1, after: null, items: [item('a')] };
    const input = { batchWorkflowId: 'follow-up-batch:b', batchId: 'b', run: 'r', page };
    const check = (value: unknown) => () => {
      checkPage(value);
    };
    expect(check(input)).not.toThrow();
    for (const bad of [undefined, {}, { ...input, page: {} }, { ...input, page: { ...page, items: [{}] } }])
      expect(check(bad)).toThrow(/^Invalid batch: /);
  });
});
