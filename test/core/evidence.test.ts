import { expect, it } from '@jest/globals';
import { afterRead, belief, decideSend, noObservations } from '../../src/core/evidence';

const job = (name: string) => {
  const status = name === 'linked' ? 'completed' : name;
  return { status, prLink: name === 'linked' ? 'https://example.test/pull/1' : null, archivedAt: null };
};

/**
 * What reads show: `completed@30-35` was asked for at second 30, and received at 35. The POST ended at second 0, so that
 * answers are fresh from second 30 on.
 */
function seen(baseline: string | null, reads: string) {
  return reads.split(' ').reduce(
    (observations, read) => {
      const [name = '', asked = '', received = asked] = read.split(/[@-]/);
      return afterRead(observations, job(name), Number(asked) * 1_000, Number(received) * 1_000);
    },
    noObservations(baseline === null ? null : job(baseline), 30_000),
  );
}

function inWords(found: ReturnType<typeof belief>): string {
  if (found.kind === 'doubted') return `doubted until ${found.until / 1_000}`;
  return found.kind === 'believed' ? found.evidence : found.kind;
}

// The simulation has random timelines.
// Proves A8, A9.
it.each<[string | null, string, string]>([
  // Only a fresh answer counts, by when it was asked for.
  ['completed', 'active@1 failed@29-31', 'open'],
  // A turn that was seen, or a status that went to completed or failed, is new.
  ['completed', 'active@1 linked@30', 'seen-active'],
  ['completed', 'failed@30', 'status-changed'],
  ['archived', 'completed@30', 'status-changed'],
  ['completed', 'archived@30', 'doubted until 60'],
  // Any other must hold, from when it was received to when another is asked for.
  ['completed', 'completed@30-35 completed@64.999-90', 'doubted until 65'],
  ['completed', 'completed@30-35 completed@65', 'confirmed'],
  ['completed', 'completed@30 linked@45 linked@60', 'job-changed'],
  ['completed', 'completed@30 archived@50 completed@60', 'doubted until 90'],
  // It may be the end of an earlier turn.
  ['active', 'active@1 completed@30', 'doubted until 60'],
  [null, 'active@1 failed@30 failed@60', 'confirmed'],
])('the belief in the status of a job that was %s, after %s, is: %s', (baseline, reads, expected) => {
  expect(inWords(belief(seen(baseline, reads), 30_000))).toBe(expected);
});

// The simulation has what proves a delivery.
it.each([
  ['completed', 'active', 'send', 'arrived'],
  ['completed', 'failed', 'reject', 'arrived'],
  ['archived', 'completed', 'send', 'send'],
  ['active', 'active', 'wait', 'wait'],
] as const)(
  'before another POST a job that was %s, and is %s, with %s: %s',
  (before, now, asked, decided) => {
    expect(decideSend(job(now), asked, job(before))).toBe(decided);
  },
);
