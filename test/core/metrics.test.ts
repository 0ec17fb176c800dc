import { describe, expect, it, jest } from '@jest/globals';
import { histogramBuckets, measure, type Meter, METRICS } from '../../src/core/metrics';

function meter() {
  const [add, set, record] = [jest.fn<Adds>(), jest.fn<Adds>(), jest.fn<Adds>()];
  const made: Meter = {
    createCounter: () => ({ add }),
    createGauge: () => ({ set }),
    createHistogram: () => ({ record }),
  };
  return { made, add, set, record };
}
type Adds = (value: number, labels: Readonly<Record<string, string>>) => void;

describe('a metric', () => {
  it.each([
    ['job', 'job'],
    ['http 503', 'http 503'],
    ['http 418', 'http 4xx'],
    ['http 599', 'http 5xx'],
    ['CERT_HAS_EXPIRED', 'other'],
    ['http 299', 'other'],
    [null, 'other'],
  ])('counts the answer %s as %s', (answer, shown) => {
    const { made, add } = meter();
    measure(made, 'exchanges', 1, { operation: 'read', answer });
    expect(add).toHaveBeenCalledWith(1, { operation: 'read', answer: shown });
  });

  it('has no label value of the wire', () => {
    const { made, add } = meter();
    measure(made, 'ends', 1, { outcome: 'hibernating', evidence: null });
    expect(add).toHaveBeenCalledWith(1, { outcome: 'other', evidence: 'none' });
  });

  it('never records less than 0, which the SDK throws for', () => {
    const { made, record } = meter();
    measure(made, 'readLateness', -0.5, {});
    expect(record).toHaveBeenCalledWith(0, {});
  });
});

describe('the table of metrics', () => {
  it.each(Object.values(METRICS))('names $name as Prometheus wants it', ({ name, kind }) => {
    expect(name).toMatch(/^[a-z_]+$/);
    expect(name.endsWith('_total')).toBe(kind === 'counter');
  });

  it('has buckets for every histogram', () => {
    const histograms = Object.values(METRICS).filter(({ kind }) => kind === 'histogram');
    expect(Object.keys(histogramBuckets()).sort()).toEqual(histograms.map(({ name }) => name).sort());
  });
});
