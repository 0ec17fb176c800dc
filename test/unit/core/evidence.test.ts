import { describe, expect, it } from '@jest/globals';
import type { JobState } from '../../../src/core/job';
import {
  afterRead,
  belief,
  decideSend,
  noObservations,
  type Observations,
  provesDelivery,
} from '../../../src/core/evidence';

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
      afterRead(observations, { job, askedAt: askedAt * 1_000, receivedAt: receivedAt * 1_000 }),
    noObservations(baseline, 30_000),
  );
}

const believes = (baseline: JobState | null, ...reads: Read[]) => belief(seen(baseline, ...reads), confirmMs);
const proves = (baseline: JobState | null, ...reads: Read[]) => provesDelivery(seen(baseline, ...reads));

const believed = (evidence: string) => ({ kind: 'believed', evidence });
const doubted = (second: number) => ({ kind: 'doubted', until: second * 1_000 });
const open = { kind: 'open' };

describe('an answer that was asked for earlier than confirm after the POST ended', () => {
  it.each([completed, failed, archived, linked])('is not believed, whatever it shows: %j', (job) => {
    for (const baseline of [completed, failed, archived, active, null]) {
      expect(believes(baseline, [active, 1], [job, 10], [job, 29.999, 60])).toEqual(open);
    }
  });

  it.each([active, pondering, failed])('proves no delivery, whatever it shows: %j', (job) => {
    expect(proves(completed, [job, 1], [job, 29.999, 60])).toBe(false);
  });

  it('does not begin a hold', () => {
    expect(believes(completed, [completed, 1], [completed, 30])).toEqual(doubted(60));
  });
});

describe('a fresh terminal answer about a job that was terminal before the send', () => {
  it('is believed where a read since the POST was not terminal, fresh or not', () => {
    for (const job of [completed, linked, failed, archived]) {
      expect(believes(completed, [active, 1], [job, 30])).toEqual(believed('seen-active'));
      expect(believes(completed, [completed, 30], [pondering, 40], [job, 50])).toEqual(
        believed('seen-active'),
      );
    }
  });

  it('is believed where the status went to completed or failed', () => {
    expect(believes(failed, [completed, 30])).toEqual(believed('status-changed'));
    expect(believes(completed, [failed, 30])).toEqual(believed('status-changed'));
    expect(believes(archived, [completed, 30])).toEqual(believed('status-changed'));
  });

  it('must hold where nothing differs, from when it was received to when another is asked for', () => {
    expect(believes(completed, [completed, 30])).toEqual(doubted(60));
    expect(believes(completed, [completed, 30, 35], [completed, 64.999, 90])).toEqual(doubted(65));
    expect(believes(completed, [completed, 30, 35], [completed, 65])).toEqual(believed('confirmed'));
  });

  it('must hold where only the link differs, or it was archived', () => {
    expect(believes(completed, [linked, 30])).toEqual(doubted(60));
    expect(believes(completed, [linked, 30], [linked, 60])).toEqual(believed('job-changed'));
    expect(believes(completed, [archived, 30])).toEqual(doubted(60));
    expect(believes(completed, [archived, 30], [archived, 60])).toEqual(believed('job-changed'));
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

describe('with confirm 0s', () => {
  it('a status that nothing shows to be new takes two answers', () => {
    const once = afterRead(noObservations(completed, 0), { job: completed, askedAt: 0, receivedAt: 0 });
    expect(belief(once, 0).kind).toBe('doubted');
    expect(belief(afterRead(once, { job: completed, askedAt: 1, receivedAt: 1 }), 0).kind).toBe('believed');
  });
});

describe('an unknown delivery', () => {
  it('is proved by a fresh answer that is not terminal, or the other one of completed and failed', () => {
    expect(proves(completed, [active, 30])).toBe(true);
    expect(proves(completed, [pondering, 30])).toBe(true);
    expect(proves(completed, [failed, 30])).toBe(true);
    expect(proves(failed, [completed, 30])).toBe(true);
    expect(proves(archived, [active, 30])).toBe(true);
  });

  it('is not proved by what anybody may have done, or by nothing', () => {
    expect(proves(completed)).toBe(false);
    for (const job of [completed, linked, archived]) expect(proves(completed, [job, 30])).toBe(false);
    for (const job of [completed, failed, archived]) expect(proves(archived, [job, 30])).toBe(false);
  });

  it('can’t be proved where the job was not terminal, or is not known', () => {
    for (const job of [active, completed, failed]) {
      expect(proves(active, [job, 30])).toBe(false);
      expect(proves(null, [job, 30])).toBe(false);
    }
  });
});

describe('the look before a POST', () => {
  it('shows by the same rule that an earlier POST has arrived', () => {
    expect(decideSend(active, 'send', completed)).toBe('arrived');
    expect(decideSend(completed, 'send', archived)).toBe('send');
    expect(decideSend(completed, 'send', null)).toBe('send');
  });
});
