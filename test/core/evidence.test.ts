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

const confirmMs = 30_000;
const completed: JobState = { status: 'completed', prLink: null, archivedAt: null };
const failed: JobState = { ...completed, status: 'failed' };
const archived: JobState = { ...completed, status: 'archived', archivedAt: '2026-01-01T00:00:00Z' };
const active: JobState = { ...completed, status: 'active' };
const pondering: JobState = { ...completed, status: 'pondering' };
const linked: JobState = { ...completed, prLink: 'https://example.test/pull/1' };

/** An answer, the second at which it was asked for, and the second at which it was received, if that is later. */
type Read = [job: JobState, askedAt: number, receivedAt?: number];

/** What these reads show. The POST ended at second 0, so that answers are fresh from second 30 on. */
function seen(baseline: JobState | null, ...reads: Read[]): Observations {
  return reads.reduce(
    (observations, [job, askedAt, receivedAt = askedAt]) =>
      afterRead(observations, job, askedAt * 1_000, receivedAt * 1_000),
    noObservations(baseline, 30_000),
  );
}

const believes = (baseline: JobState | null, ...reads: Read[]) => belief(seen(baseline, ...reads), confirmMs);
const proves = (baseline: JobState | null, ...reads: Read[]) => provesDelivery(seen(baseline, ...reads));

const believed = (evidence: string) => ({ kind: 'believed', evidence });
const doubted = (second: number) => ({ kind: 'doubted', until: second * 1_000 });
const open = { kind: 'open' };

describe('a fresh terminal answer about a job that was terminal before the send', () => {
  it.each([completed, linked, failed, archived])('is believed after a read that was active: %j', (job) => {
    expect(believes(completed, [active, 1], [job, 30])).toEqual(believed('seen-active'));
    expect(believes(completed, [completed, 30], [active, 40], [job, 50])).toEqual(believed('seen-active'));
  });

  it('must hold after a word that nobody knows, which is no proof of a turn', () => {
    expect(believes(completed, [pondering, 1], [completed, 30])).toEqual(doubted(60));
  });

  it.each([
    [failed, completed],
    [completed, failed],
    [archived, completed],
  ])('is believed where the status went to completed or failed: from %j to %j', (before, now) => {
    expect(believes(before, [now, 30])).toEqual(believed('status-changed'));
  });

  it('must hold where nothing differs, from when it was received to when another is asked for', () => {
    expect(believes(completed, [completed, 30, 35], [completed, 64.999, 90])).toEqual(doubted(65));
    expect(believes(completed, [completed, 30, 35], [completed, 65])).toEqual(believed('confirmed'));
  });

  it.each([linked, archived])('must hold where only the link differs, or it was archived: %j', (job) => {
    expect(believes(completed, [job, 30])).toEqual(doubted(60));
    expect(believes(completed, [job, 30], [job, 60])).toEqual(believed('job-changed'));
  });

  it('goes on holding when the link changes, and begins anew after another status', () => {
    expect(believes(completed, [completed, 30], [linked, 45], [linked, 60])).toEqual(believed('job-changed'));
    expect(believes(completed, [completed, 30], [archived, 50], [completed, 60])).toEqual(doubted(90));
  });

  it('is open again while the job is active', () => {
    expect(believes(completed, [completed, 30], [active, 40])).toEqual(open);
  });
});

describe('a fresh terminal answer about a job that was not terminal before, or is not known', () => {
  it.each([active, pondering, null])(
    'must hold, since it may be the end of an earlier turn: %j',
    (baseline) => {
      expect(believes(baseline, [active, 1], [completed, 30])).toEqual(doubted(60));
      expect(believes(baseline, [failed, 30], [failed, 60])).toEqual(believed('confirmed'));
    },
  );

  it('says that the job has changed where the link differs', () => {
    expect(believes(active, [linked, 30], [linked, 60])).toEqual(believed('job-changed'));
  });
});

it('with confirm 0s a status that nothing shows to be new takes two answers', () => {
  const once = afterRead(noObservations(completed, 0), completed, 0, 0);
  expect(belief(once, 0).kind).toBe('doubted');
  expect(belief(afterRead(once, completed, 1, 1), 0).kind).toBe('believed');
});

it.each([
  [completed, [active, failed], [completed, linked, archived, pondering]],
  [failed, [active, completed], [failed]],
  [archived, [active], [completed, failed, archived]],
  [active, [], [active, completed, failed]],
  [null, [], [active, completed, failed]],
])(
  'an unknown delivery about a job that was %j is proved by a fresh answer %j, and by no other: %j',
  (before, proofs, others) => {
    expect(proves(before)).toBe(false);
    for (const job of proofs) expect(proves(before, [job, 30])).toBe(true);
    for (const job of others) expect(proves(before, [job, 30])).toBe(false);
  },
);

describe('the look before a POST', () => {
  it.each(['send', 'wait', 'reject'] as const)(
    'leaves whenActive %s to decide where the job may be active',
    (asked) => {
      for (const job of [completed, archived, failed]) expect(decideSend(job, asked, null)).toBe('send');
      for (const job of [active, pondering]) expect(decideSend(job, asked, null)).toBe(asked);
    },
  );

  it('finds the message of an earlier POST where a job that was at rest has moved', () => {
    expect(decideSend(active, 'send', completed)).toBe('arrived');
    expect(decideSend(failed, 'reject', completed)).toBe('arrived');
    expect(decideSend(completed, 'send', archived)).toBe('send');
    expect(decideSend(active, 'wait', active)).toBe('wait');
  });
});
