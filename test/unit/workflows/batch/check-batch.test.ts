import { describe, expect, it } from '@jest/globals';
import { checkBatch } from '../../../../src/workflows/batch/check-batch';

const handedOver = { items: 3, pages: 1 };

function problemsOf(input: unknown): readonly string[] {
  const checked = checkBatch(input, 'nightly');
  return 'problems' in checked ? checked.problems : [];
}

describe('the input of a batch', () => {
  it('has defaults, and its id from its workflow where it names none', () => {
    expect(checkBatch({ handedOver }, 'nightly')).toEqual({
      plan: { batchId: 'nightly', concurrency: 50, tolerate: null, items: undefined, handedOver },
    });
  });

  it.each([
    ['text', 'input'],
    [{}, 'items'],
    [{ items: [{}], handedOver }, 'items'],
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
