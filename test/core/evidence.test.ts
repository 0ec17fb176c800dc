import { expect, it } from '@jest/globals';
import { decideSend } from '../../src/core/evidence';

const job = (status: string) => ({ status, prLink: null, archivedAt: null });

// evidence.property.test.ts and the simulation have the belief in a status, and what proves a delivery.
it.each(['send', 'wait', 'reject'] as const)(
  'the look before a POST leaves whenActive %s to decide where the job may be active',
  (asked) => {
    const decide = (status: string) => decideSend(job(status), asked, null);
    expect(['completed', 'archived', 'failed'].map(decide)).toEqual(['send', 'send', 'send']);
    expect(['active', 'pondering'].map(decide)).toEqual([asked, asked]);
  },
);

it.each([
  ['completed', 'active', 'send', 'arrived'],
  ['completed', 'failed', 'reject', 'arrived'],
  ['archived', 'completed', 'send', 'send'],
  ['active', 'active', 'wait', 'wait'],
] as const)(
  'the look before another POST to a job that was %s, and is %s, with %s: %s',
  (before, now, asked, decided) => {
    expect(decideSend(job(now), asked, job(before))).toBe(decided);
  },
);
