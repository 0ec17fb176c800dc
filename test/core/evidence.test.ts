import { expect, it } from '@jest/globals';
import { decideSend } from '../../src/core/evidence';

// The simulation has what is believed, and what proves a delivery.
it.each([
  ['completed', 'active', 'send', 'arrived'],
  ['completed', 'failed', 'reject', 'arrived'],
  ['archived', 'completed', 'send', 'send'],
  ['active', 'active', 'wait', 'wait'],
] as const)(
  'before another POST a job that was %s, and is %s, with %s: %s',
  (before, now, asked, decided) => {
    const job = (status: string) => ({ status, prLink: null, archivedAt: null });
    expect(decideSend(job(now), asked, job(before))).toBe(decided);
  },
);
