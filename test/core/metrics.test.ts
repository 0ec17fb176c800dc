import { expect, it, jest } from '@jest/globals';
import { measure, type Meter } from '../../src/core/metrics';

type Adds = (value: number, labels: Readonly<Record<string, string>>) => void;

function meter() {
  const recorded = jest.fn<Adds>();
  const made: Meter = {
    createCounter: () => ({ add: recorded }),
    createGauge: () => ({ set: recorded }),
    createHistogram: () => ({ record: recorded }),
  };
  return { made, recorded };
}

it.each([
  ['job', 'job'],
  ['http 503', 'http 503'],
  ['http 418', 'http 4xx'],
  ['http 599', 'http 5xx'],
  ['CERT_HAS_EXPIRED', 'other'],
  ['http 299', 'other'],
  [null, 'other'],
])('a metric counts the answer %s as %s', (answer, shown) => {
  const { made, recorded } = meter();
  measure(made, 'exchanges', 1, { operation: 'read', answer });
  expect(recorded).toHaveBeenCalledWith(1, { operation: 'read', answer: shown });
});

it('a metric has no label value of the wire', () => {
  const { made, recorded } = meter();
  measure(made, 'ends', 1, { outcome: 'hibernating', evidence: null });
  expect(recorded.mock.calls).toEqual([[1, { outcome: 'other', evidence: 'none' }]]);
});
