import { describe, expect, it } from '@jest/globals';
import { settleRemaining } from '../../../src/workflows/follow-up/watch-step';

const completed = { status: 'completed', prLink: null, archivedAt: null };

describe('a believed job', () => {
  it('is re-read for its link while it is completed without one', () => {
    expect(settleRemaining(completed, 1_000, 11_000, 30_000)).toBe(20_000);
    expect(settleRemaining(completed, 1_000, 31_000, 30_000)).toBe(0);
    expect(settleRemaining(completed, 1_000, 99_000, 30_000)).toBe(0);
  });

  it.each([
    { ...completed, prLink: 'https://example.test/pull/1' },
    { ...completed, status: 'failed' },
    { ...completed, status: 'archived' },
  ])('is final at once as %j', (job) => {
    expect(settleRemaining(job, 1_000, 1_000, 30_000)).toBe(0);
  });
});
