import { expect, it, jest } from '@jest/globals';
import { measure } from '../../src/contract/metrics';

it.each([
  ['job', 'job'],
  ['http_503', 'http_503'],
  ['http_418', 'http_4xx'],
  ['CERT_HAS_EXPIRED', 'other'],
  ['http_299', 'other'],
  [null, 'other'],
])('a metric has no label value of the wire: it counts the answer %s as %s', (answer, shown) => {
  const add = jest.fn();
  const meter = { createCounter: () => ({ add }) } as never;
  measure(meter, 'exchanges', 1, { operation: 'read', answer });
  measure(meter, 'ends', 1, { outcome: 'hibernating', evidence: null });
  const labels = [
    { operation: 'read', answer: shown },
    { outcome: 'other', evidence: 'none' },
  ];
  expect(add.mock.calls).toEqual(labels.map((each) => [1, each]));
});
