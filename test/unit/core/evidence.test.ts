import { describe, expect, it } from '@jest/globals';
import type { JobState } from '../../../src/core/job';
import {
  afterAnswer,
  type AnswerSource,
  belief,
  type Belief,
  noObservations,
  provesDelivery,
  showsTurn,
} from '../../../src/core/evidence';

const confirmMs = 60_000;
const completed: JobState = { status: 'completed', prLink: null, archivedAt: null };
const failed: JobState = { ...completed, status: 'failed' };
const archived: JobState = { ...completed, status: 'archived', archivedAt: '2026-01-01T00:00:00Z' };
const active: JobState = { ...completed, status: 'active' };
const linked: JobState = { ...completed, prLink: 'https://example.test/pull/1' };

/** What is believed after these answers, each a job, the second at which it was read, and who gave it. */
function after(
  baseline: JobState | null,
  ...answers: [JobState, second: number, source?: AnswerSource][]
): Belief {
  let observations = noObservations(baseline);
  let askedAt = 0;
  for (const [job, second, source] of answers) {
    askedAt = second * 1_000;
    observations = afterAnswer(observations, { job, askedAt, receivedAt: askedAt }, source);
  }
  return belief(observations, askedAt, confirmMs);
}

const believed = (evidence: string) => ({ kind: 'believed', evidence });
const doubted = (holdMs: number) => ({ kind: 'doubted', holdMs });

describe('a job that was terminal before the send', () => {
  it('is not done while it is active, or in a status that nobody knows', () => {
    expect(after(completed, [active, 1])).toEqual({ kind: 'not-terminal' });
    expect(after(completed, [{ ...active, status: 'pondering' }, 1])).toEqual({ kind: 'not-terminal' });
  });

  it('is believed at once when it was seen active and differs from before', () => {
    expect(after(completed, [active, 1], [linked, 2])).toEqual(believed('seen-active'));
    expect(after(completed, [active, 1], [failed, 2])).toEqual(believed('seen-active'));
    expect(after(completed, [{ ...active, status: 'pondering' }, 1], [failed, 2])).toEqual(
      believed('seen-active'),
    );
  });

  it('is read once more when it was seen active and equals what it was before: a replica may be stale', () => {
    expect(after(completed, [active, 1], [completed, 2])).toEqual(doubted(0));
    expect(after(completed, [active, 1], [completed, 2], [completed, 3])).toEqual(believed('seen-active'));
    expect(after(completed, [completed, 1], [active, 2], [completed, 3])).toEqual(doubted(0));
  });

  it('is believed by two equal reads when it changed to completed or failed', () => {
    expect(after(failed, [completed, 1])).toEqual(doubted(0));
    expect(after(failed, [completed, 1], [completed, 2])).toEqual(believed('status-changed'));
    expect(after(completed, [failed, 1], [failed, 2])).toEqual(believed('status-changed'));
    expect(after(archived, [completed, 1], [completed, 2])).toEqual(believed('status-changed'));
    expect(after(failed, [completed, 1], [linked, 2])).toEqual(doubted(0));
    expect(after(failed, [completed, 1], [linked, 2], [linked, 3])).toEqual(believed('status-changed'));
  });

  it('is not believed by the POST’s own answer and one read when it changed', () => {
    expect(after(failed, [completed, 0, 'response'], [completed, 1])).toEqual(doubted(0));
    expect(after(failed, [completed, 0, 'response'], [completed, 1], [completed, 2])).toEqual(
      believed('status-changed'),
    );
  });

  it('must hold when only the POST’s own answer was active and it equals what it was before', () => {
    const byResponse: [JobState, number, AnswerSource] = [active, 0, 'response'];
    expect(after(completed, byResponse, [completed, 1])).toEqual(doubted(60_000));
    expect(after(completed, byResponse, [completed, 1], [completed, 11])).toEqual(doubted(50_000));
    expect(after(completed, byResponse, [completed, 1], [completed, 61])).toEqual(believed('confirmed'));
  });

  it('is believed at once when only the POST’s own answer was active and it differs from before', () => {
    expect(after(completed, [active, 0, 'response'], [linked, 1])).toEqual(believed('seen-active'));
    expect(after(completed, [active, 0, 'response'], [failed, 1])).toEqual(believed('seen-active'));
  });

  it('counts a read that was active for more than the POST’s own answer, in either order', () => {
    const answers: [JobState, number, AnswerSource?][] = [
      [active, 0],
      [active, 1, 'response'],
    ];
    for (const order of [answers, [...answers].reverse()]) {
      expect(after(completed, ...order, [completed, 2], [completed, 3])).toEqual(believed('seen-active'));
    }
  });

  it('must hold when it changed to archived, which anybody may do', () => {
    expect(after(completed, [archived, 1])).toEqual(doubted(60_000));
    expect(after(completed, [archived, 1], [archived, 61])).toEqual(believed('job-changed'));
  });

  it('must hold when nothing differs: the old status may still be shown', () => {
    expect(after(completed, [completed, 0])).toEqual(doubted(60_000));
    expect(after(completed, [completed, 0], [completed, 45])).toEqual(doubted(15_000));
    expect(after(completed, [completed, 0], [completed, 60])).toEqual(believed('confirmed'));
  });

  it('must hold when only the link differs: it may be an earlier turn’s', () => {
    expect(after(completed, [linked, 0], [linked, 30])).toEqual(doubted(30_000));
    expect(after(completed, [linked, 0], [linked, 60])).toEqual(believed('job-changed'));
  });

  it('goes on holding when the link changes meanwhile', () => {
    expect(after(completed, [completed, 0], [linked, 30], [linked, 60])).toEqual(believed('job-changed'));
  });
});

describe('a job that was not terminal before the send', () => {
  it('must hold even when it was seen active, since an earlier turn may have ended', () => {
    expect(after(active, [active, 1], [linked, 2])).toEqual(doubted(60_000));
    expect(after(active, [active, 1], [linked, 2], [linked, 62])).toEqual(believed('job-changed'));
    expect(after(active, [active, 1], [completed, 2], [completed, 62])).toEqual(believed('confirmed'));
  });

  it('begins to hold anew after another status', () => {
    expect(after(active, [completed, 0], [active, 30], [completed, 40], [completed, 70])).toEqual(
      doubted(30_000),
    );
    expect(after(active, [completed, 0], [failed, 30], [failed, 60])).toEqual(doubted(30_000));
  });
});

describe('a job whose state before the send is not known', () => {
  it('must hold, whatever was seen', () => {
    expect(after(null, [active, 1], [linked, 2])).toEqual(doubted(60_000));
    expect(after(null, [active, 1], [linked, 2], [linked, 62])).toEqual(believed('confirmed'));
    expect(provesDelivery(afterAnswer(noObservations(null), timed(active, 0, 0)))).toBe(false);
  });
});

describe('a turn since the baseline', () => {
  it('is shown by one look at a job that was at rest', () => {
    expect([active, failed, completed, linked, archived].map((job) => showsTurn(completed, job))).toEqual([
      ...[true, true, false, false, false],
    ]);
    expect([showsTurn(active, completed), showsTurn(null, active)]).toEqual([false, false]);
  });
});

describe('an unknown delivery', () => {
  function proved(baseline: JobState, ...jobs: JobState[]): boolean {
    const observations = jobs.reduce(
      (seen, job, index) => afterAnswer(seen, timed(job, index, index)),
      noObservations(baseline),
    );
    return provesDelivery(observations);
  }

  it('is proved when a job at rest has moved: it was active, or changed to completed or failed', () => {
    expect(proved(completed, active)).toBe(true);
    expect(proved(completed, active, completed)).toBe(true);
    expect(proved(completed, failed)).toBe(true);
    expect(proved(failed, completed)).toBe(true);
  });

  it('is not proved by what anybody may have done, or by nothing', () => {
    expect(proved(completed)).toBe(false);
    expect(proved(completed, completed)).toBe(false);
    expect(proved(completed, linked)).toBe(false);
    expect(proved(completed, archived)).toBe(false);
  });

  it('can’t be proved where the job was already moving', () => {
    expect(proved(active, active)).toBe(false);
    expect(proved(active, completed)).toBe(false);
  });
});

describe('how long a status has held', () => {
  it('needs two answers, however long ago the first one was', () => {
    expect(
      belief(afterAnswer(noObservations(completed), timed(completed, 0, 0)), 600_000, confirmMs).kind,
    ).toBe('doubted');
    expect(belief(afterAnswer(noObservations(completed), timed(completed, 0, 0)), 0, 0).kind).toBe('doubted');
  });

  it('counts from when the first answer was heard to when the last was asked for', () => {
    const first = afterAnswer(noObservations(completed), timed(completed, 0, 20_000));
    const second = afterAnswer(first, timed(completed, 60_000, 90_000));
    expect(belief(second, 60_000, confirmMs)).toEqual(doubted(20_000));
  });
});

function timed(job: JobState, askedAt: number, receivedAt: number) {
  return { job, askedAt, receivedAt };
}
