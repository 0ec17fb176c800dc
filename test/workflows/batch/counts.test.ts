import { describe, expect, it } from '@jest/globals';
import { isFailure, type ItemEnd } from '../../../src/core/batch/batch';
import { ITEM_END } from '../../harness/samples';
import {
  addUp,
  countEnd,
  failuresOf,
  firstFailures,
  NO_COUNTS,
  toleratedFailures,
} from '../../../src/workflows/batch/counts';

function end(outcome: ItemEnd['outcome'], more: Partial<ItemEnd> = {}): ItemEnd {
  return { ...ITEM_END, outcome, ...more };
}

const ends = [
  end('completed', { evidence: 'seen-active' }),
  end('archived', { evidence: 'confirmed' }),
  end('failed', { evidence: 'seen-active' }),
  end('DeliveryUnknown', { delivery: 'unknown' }),
  end('terminated', { delivery: null }),
];

describe('the counts of a batch', () => {
  const counts = ends.reduce(countEnd, NO_COUNTS);

  it('tell results from failures, and how often each', () => {
    expect(counts).toEqual({
      settled: 5,
      byStatus: { completed: 1, archived: 1, failed: 1 },
      byFailure: { DeliveryUnknown: 1, terminated: 1 },
      byEvidence: { 'seen-active': 2, confirmed: 1 },
      unknownDeliveries: 1,
    });
  });

  it('of pages add up', () => {
    const byFailure = { DeliveryUnknown: 2, terminated: 2 };
    expect(addUp([counts, counts])).toMatchObject({ settled: 10, byFailure, unknownDeliveries: 2 });
  });

  it('count a job that failed against the tolerance, and one that was archived not', () => {
    expect(ends.map(isFailure)).toEqual([false, false, true, true, true]);
    expect(failuresOf(counts)).toBe(3);
  });
});

describe('the tolerance', () => {
  it.each([
    [null, Infinity],
    [{ items: 0 }, 0],
    [{ items: 3 }, 3],
    [{ percent: 10 }, 5],
    [{ percent: 2.5 }, 1],
    [{ percent: 100 }, 50],
  ])('%j of 50 items is %d failures', (tolerate, failures) => {
    expect(toleratedFailures(tolerate, 50)).toBe(failures);
  });

  it('of a percentage is exact', () => {
    for (let percent = 0; percent <= 100; percent += 1) {
      expect(toleratedFailures({ percent }, 100)).toBe(percent);
      expect(toleratedFailures({ percent: percent / 10 }, 100_000)).toBe(percent * 100);
    }
  });
});

it('the first failures are twenty at most, each once', () => {
  const one = (id: number) => ({ workflowId: `w-${id}`, outcome: 'failed', message: null }) as const;
  const many = Array.from({ length: 15 }, (_, id) => one(id));
  expect(firstFailures([many, many])).toHaveLength(15);
  expect(firstFailures([many, Array.from({ length: 15 }, (_, id) => one(100 + id))])).toHaveLength(20);
});
