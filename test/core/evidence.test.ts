import { describe, expect, it } from '@jest/globals';
import type { JobState } from '../../src/core/job';
import {
  afterRead,
  belief,
  decideSend,
  noObservations,
  type Observations,
  provesDelivery,
} from '../../src/core/evidence';

const completed: JobState = { status: 'completed', prLink: null, archivedAt: null };
const JOBS = {
  completed,
  failed: { ...completed, status: 'failed' },
  archived: { ...completed, status: 'archived', archivedAt: '2026-01-01T00:00:00Z' },
  active: { ...completed, status: 'active' },
  pondering: { ...completed, status: 'pondering' },
  linked: { ...completed, prLink: 'https://example.test/pull/1' },
  unread: null,
} as const;
type Name = keyof typeof JOBS;
const job = (name: string) => JOBS[name as Name] ?? completed;

/**
 * What reads show: `completed@30-35` was asked for at second 30, and received at 35. The POST ended at second 0, so that
 * answers are fresh from second 30 on.
 */
function seen(baseline: Name, reads: string, freshFromMs = 30_000): Observations {
  return reads.split(' ').reduce(
    (observations, read) => {
      const [name = '', asked = '', received = asked] = read.split(/[@-]/);
      return afterRead(observations, job(name), Number(asked) * 1_000, Number(received) * 1_000);
    },
    noObservations(JOBS[baseline], freshFromMs),
  );
}

// evidence.property.test.ts has timelines of all kinds, and the simulation notices each rule that is taken out.
describe('the belief in a terminal status', () => {
  it.each<[Name, string, string | number | null]>([
    // A turn that was seen, or a status that went to completed or failed, is new.
    ['completed', 'active@1 linked@30', 'seen-active'],
    ['completed', 'pondering@1 completed@30', 60],
    ['completed', 'failed@30', 'status-changed'],
    ['archived', 'completed@30', 'status-changed'],
    ['completed', 'archived@30', 60],
    // Any other must hold, from when it was received to when another is asked for.
    ['completed', 'completed@30-35 completed@64.999-90', 65],
    ['completed', 'completed@30-35 completed@65', 'confirmed'],
    ['completed', 'completed@30 linked@45 linked@60', 'job-changed'],
    ['completed', 'completed@30 archived@50 completed@60', 90],
    ['completed', 'completed@30 active@40', null],
    // It may be the end of an earlier turn.
    ['active', 'active@1 completed@30', 60],
    ['pondering', 'linked@30 linked@60', 'job-changed'],
    ['unread', 'active@1 failed@30 failed@60', 'confirmed'],
  ])('of a job that was %s, after %s, is there, or doubted until: %j', (baseline, reads, expected) => {
    const [evidence, until] =
      typeof expected === 'string' ? [expected] : [undefined, (expected ?? 0) * 1_000];
    const believed = evidence === undefined ? { kind: 'doubted', until } : { kind: 'believed', evidence };
    expect(belief(seen(baseline, reads), 30_000)).toEqual(expected === null ? { kind: 'open' } : believed);
  });

  it('takes two answers where confirm is 0s', () => {
    expect(belief(seen('completed', 'completed@0', 0), 0).kind).toBe('doubted');
    expect(belief(seen('completed', 'completed@0 completed@1', 0), 0).kind).toBe('believed');
  });
});

it.each<[Name, string, string]>([
  ['completed', 'active failed', 'completed linked archived pondering'],
  ['failed', 'active completed', 'failed'],
  ['archived', 'active', 'completed failed archived'],
  ['active', '', 'active completed failed'],
  ['unread', '', 'active completed failed'],
])(
  'the delivery to a job that was %s is proved by a fresh answer %j, and not by %j',
  (before, proofs, others) => {
    const proving = `${proofs} ${others}`
      .trim()
      .split(' ')
      .filter((name) => provesDelivery(seen(before, `${name}@30`)));
    expect(proving.join(' ')).toBe(proofs);
  },
);

describe('the look before a POST', () => {
  it.each(['send', 'wait', 'reject'] as const)(
    'leaves whenActive %s to decide where the job may be active',
    (asked) => {
      for (const name of ['completed', 'archived', 'failed'])
        expect(decideSend(job(name), asked, null)).toBe('send');
      for (const name of ['active', 'pondering']) expect(decideSend(job(name), asked, null)).toBe(asked);
    },
  );

  it('finds the message of an earlier POST where a job that was at rest has moved', () => {
    expect(decideSend(job('active'), 'send', completed)).toBe('arrived');
    expect(decideSend(job('failed'), 'reject', completed)).toBe('arrived');
    expect(decideSend(completed, 'send', job('archived'))).toBe('send');
    expect(decideSend(job('active'), 'wait', job('active'))).toBe('wait');
  });
});
