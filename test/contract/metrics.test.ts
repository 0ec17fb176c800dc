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

it('the metric of unknown statuses counts each status by its word, and every further status as other after 20 words of a process', () => {
  const add = jest.fn<(value: number, labels: Readonly<Record<string, string>>) => void>();
  const meter = { createCounter: () => ({ add }) } as never;
  const statuses = Array.from({ length: 100 }, (_, number) => `status ${number}`);
  for (const status of [...statuses, 'status 3']) recordMetric(meter, 'unknownStatusReads', 1, { status });
  const counted = add.mock.calls.map(([, { status }]) => status);
  expect(counted).toEqual([...statuses.slice(0, 20), ...Array<string>(80).fill('other'), 'status 3']);
});

it('a counter of words starts at 0 for the word other', () => {
  const add = jest.fn();
  const createCounter = jest.fn<(name: string) => object>().mockReturnValue({ add });
  initializeCounters({ createCounter } as never, 'activities', { activityType: 'getJob' });
  expect(createCounter.mock.calls.map(([name]) => name)).toContain(METRICS.unknownStatusReads.name);
  expect(add).toHaveBeenCalledWith(0, { activityType: 'getJob', status: 'other' });
});
