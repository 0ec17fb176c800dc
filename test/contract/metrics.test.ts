import { expect, it, jest } from '@jest/globals';
import { initializeCounters, METRICS, recordMetric } from '../../src/contract/metrics';

it.each([
  ['job', 'job'],
  ['http_503', 'http_503'],
  ['http_418', 'http_4xx'],
  ['CERT_HAS_EXPIRED', 'tls_error'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls_error'],
  ['a bug', 'other'],
  ['http_299', 'other'],
  [null, 'other'],
])(
  'the requests metric counts the result %s as %s, because a label has only listed values',
  (result, shown) => {
    const add = jest.fn();
    const meter = { createCounter: () => ({ add }) } as never;
    recordMetric(meter, 'requests', 1, { operation: 'read', result });
    recordMetric(meter, 'ended', 1, { outcome: 'hibernating', evidence: null });
    const labels = [
      { operation: 'read', result: shown },
      { outcome: 'other', evidence: 'none' },
    ];
    expect(add.mock.calls).toEqual(labels.map((each) => [1, each]));
  },
);

it('a counter without labels starts at 0', () => {
  const add = jest.fn();
  const createCounter = jest.fn<(name: string) => object>().mockReturnValue({ add });
  initializeCounters({ createCounter } as never, 'activities', { activityType: 'getJob' });
  expect(createCounter.mock.calls.map(([name]) => name)).toContain(METRICS.unknownStatusReads.name);
  expect(add).toHaveBeenCalledWith(0, { activityType: 'getJob' });
});
