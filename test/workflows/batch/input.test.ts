import { describe, expect, it } from '@jest/globals';
import { ApplicationFailure } from '@temporalio/common';
import { checkBatchInput } from '../../../src/workflows/batch/input';

const chunks = { items: 3, firsts: [0, 2] };
const items = [{ projectId: 'p', jobId: 'j', prompt: 'Rebase.' }];
const startedEarlier = { cursor: 2, lanes: [{ next: 1, end: 2, state: 'running' }] };

function problemsOf(input: unknown): readonly string[] {
  try {
    checkBatchInput(input, 'follow-up-batch:nightly');
    return [];
  } catch (error) {
    if (!(error instanceof ApplicationFailure) || error.type !== 'InvalidBatch') throw error;
    const [, problems] = /^Invalid batch: (.*)\. Nothing was sent\.$/s.exec(error.message) ?? [];
    return problems?.split(/; (?=item \d+: |\w+: |… and)/) ?? [];
  }
}

describe('the input of a batch', () => {
  it('has defaults, and the batch ID of the workflow ID if it has no batchId', () => {
    const defaults = {
      concurrency: 50,
      maxFailures: null,
      digest: null,
      startedEarlier: null,
      retryScope: null,
    };
    const input = { batchId: 'nightly', items, ...defaults };
    expect(checkBatchInput({ items }, 'follow-up-batch:nightly')).toEqual(input);
    const settings = { concurrency: 2, maxFailures: { percent: 5 } };
    const given = { batchId: 'b', ...settings, digest: 'd', startedEarlier, retryScope: 'unsent' };
    expect(checkBatchInput({ chunks, ...given }, 'follow-up-batch:b')).toEqual({ chunks, ...given });
  });

  // Proves B7.
  it.each([
    ['text', 'input'],
    // A buffer has a field for each byte.
    [Buffer.alloc(2_000_000), 'input'],
    // A worker of another version could make this input.
    [{ items, continued: {} }, 'input'],
    [{}, 'items'],
    [{ items, chunks }, 'items'],
    [{ items: { length: 1 } }, 'items'],
    [{ items: [] }, 'items'],
    [{ items: ['x'.repeat(1_024 * 1_024)] }, 'items'],
    [{ chunks: { items: 1.5, firsts: [0] } }, 'chunks'],
    [
      { items, startedEarlier: { ...startedEarlier, lanes: [{ next: 1, end: 2, state: 'open' }] } },
      'startedEarlier',
    ],
    [{ items, digest: '\ud800' }, 'digest'],
    [{ items, retryScope: 'all' }, 'retryScope'],
    [{ items, batchId: '\ud800' }, 'batchId'],
    [{ items, concurrency: 0 }, 'concurrency'],
    [{ items, maxFailures: { percent: 101 } }, 'maxFailures'],
    [{ items, maxFailures: { items: -1 } }, 'maxFailures'],
    [{ items, batchId: 'weekly' }, 'batchId'],
  ])('is rejected with exactly one problem (row %#)', (input, field) => {
    expect(problemsOf(input)).toEqual([expect.stringMatching(new RegExp(`^${field}: `))]);
  });

  it.each<[string, unknown]>([
    ['other fields', Object.fromEntries(Array.from({ length: 100_000 }, (_, nth) => [`field-${nth}`, 1]))],
    ['empty items', { items: Array(100_000).fill({}) }],
    ['long texts', { items: Array(100).fill({ projectId: 'p'.repeat(10_000), jobId: '\ud800' }) }],
  ])(
    'is rejected with a message of less than 8,192 characters if it has too many or too large %s',
    (_, input) => {
      const problems = problemsOf(input);
      expect(problems.length).toBeGreaterThan(0);
      expect(problems.join('; ').length).toBeLessThan(8_192);
    },
  );

  it('is rejected with every problem of its settings and at most 20 problems of its items, each with at most 300 characters', () => {
    expect(problemsOf({ items: [...items, { ...items[0], jobId: 7 }], concurrency: 0 })).toEqual([
      expect.stringMatching(/^concurrency: /),
      expect.stringMatching(/^item 2: jobId: /),
    ]);
    const problems = problemsOf({ items: Array(50).fill('x'.repeat(1_000)) });
    expect(problems).toHaveLength(21);
    expect(problems.at(-1)).toBe('… and 30 more');
    expect(Math.max(...problems.map(({ length }) => length))).toBeLessThanOrEqual(300);
  });
});
