import { describe, expect, it } from '@jest/globals';
import type { ReadTrouble } from '../../../src/core/activities';
import type { AgentJob } from '../../../src/core/job';
import { JOB, PLAN } from '../../harness/samples';
import { mayPollOn } from '../../../src/workflows/follow-up/poll';
import { newWatch, record } from '../../../src/workflows/follow-up/state';
import { afterReading } from '../../../src/core/tally';
import { nextStep } from '../../../src/workflows/follow-up/watch';

const JOBS: Readonly<Record<string, AgentJob>> = {
  completed: { ...JOB, status: 'completed' },
  failed: { ...JOB, status: 'failed' },
  active: JOB,
  archived: { ...JOB, status: 'archived' },
  linked: { ...JOB, status: 'completed', prLink: 'https://example.test/pull/1' },
};
const trouble = (httpStatus: number): ReadTrouble => ({
  ...{ kind: 'trouble', label: '', message: '', httpStatus },
  ...(httpStatus === 429 ? { retryAfterMs: 60_000 } : {}),
});

const plan = {
  ...PLAN,
  deadlineMs: 600_000,
  polling: { ...PLAN.polling, jitter: 0 },
  settleMs: 20_000,
} as const;

/**
 * The step after these answers, each a job or an HTTP status with the second at which it was read: `active@10 503@20`. The
 * POST ended at 0, answers are fresh from 30 on, and the deadline is at 600.
 */
function stepAfter(answers: string, nowSecond?: number) {
  const watch = newWatch(JOBS.completed ?? null, 0, 30_000);
  let askedAt = 0;
  for (const [, what = '', second] of answers.matchAll(/(\w+)@(\d+)/g)) {
    askedAt = Number(second) * 1_000;
    const job = JOBS[what];
    const read = job === undefined ? trouble(Number(what)) : ({ kind: 'job', job } as const);
    watch.trouble = afterReading(watch.trouble, read, askedAt);
    if (job !== undefined) record(watch, job, askedAt, askedAt);
  }
  const now = nowSecond === undefined ? askedAt : nowSecond * 1_000;
  return nextStep({ plan, deadlineAt: 600_000 }, watch, now, askedAt, () => 0.5);
}

const settled = (evidence: string) => ({ kind: 'settled', evidence });
const waits = (phase: string, waitMs: number) => ({ kind: 'wait', phase, waitMs });

describe('the watch', () => {
  it.each([
    ['polls an active job at the cadence of the turn’s age', 'active@200', waits('watching', 20_000)],
    ['reads a terminal job at the initial interval', 'completed@0', waits('confirming', 5_000)],
    ['waits for a fresh answer once it has seen the turn', 'active@10', waits('watching', 20_000)],
    ['does not before, also in trouble', 'active@10 503@15', waits('watching', 15_000)],
    ['reads a terminal job when an answer becomes fresh', 'failed@28', waits('confirming', 2_000)],
    ['believes another status that is fresh', 'failed@30', settled('status-changed')],
    ['reads a status that must hold at the initial interval', 'completed@30', waits('confirming', 5_000)],
    ['reads one that must hold when the hold is over', 'linked@30 linked@58', waits('confirming', 2_000)],
    ['believes a status that has held', 'linked@30 linked@58 linked@60', settled('job-changed')],
    ['waits as long as the service asks for', 'failed@20 429@25', waits('confirming', 60_000)],
    ['is settled by a believed job with its link', 'active@10 linked@30', settled('seen-active')],
    ['shows a refused key as its phase', '401@20', waits('unauthorized', 5_000)],
    ['shows a refused key while it confirms too', 'completed@10 403@20', waits('unauthorized', 5_000)],
    ['goes on through trouble', '503@20', waits('watching', 5_000)],
    ['is lost after five 404s in a row', 'active@5 404@10 404@20 404@25 404@35 404@40', { kind: 'lost' }],
    ['does not after four', 'active@5 404@20 404@25 404@35 404@40', waits('watching', 5_000)],
  ])('%s: %s', (_, answers, step) => {
    expect(stepAfter(answers)).toMatchObject(step);
  });

  it('polls on while a job is active, and reads one at a time otherwise', () => {
    expect(stepAfter('active@40')).toEqual({ ...waits('watching', 5_000), single: false, evidence: null });
    expect(stepAfter('completed@0')).toMatchObject({ single: true });
  });
});

describe('a believed job without a link', () => {
  const believed = 'active@10 completed@30';

  it('is read for it until an answer that was asked for at the end of settle shows none', () => {
    const reads = { ...waits('settling', 5_000), single: true, evidence: 'seen-active' };
    expect(stepAfter(believed)).toEqual(reads);
    expect(stepAfter(`${believed} completed@48`)).toMatchObject(waits('settling', 2_000));
    expect(stepAfter(`${believed} completed@50`)).toEqual(settled('seen-active'));
  });

  // Proves A10.
  it('is read on while reads fail: only a readable answer says that there is none', () => {
    expect(stepAfter(`${believed} 503@50`, 70)).toMatchObject({ kind: 'wait', phase: 'settling' });
    expect(stepAfter(`${believed} 503@50 linked@71`)).toEqual(settled('seen-active'));
  });

  it('is watched again when it becomes active again', () => {
    expect(stepAfter(`${believed} active@40`)).toMatchObject({ phase: 'watching', evidence: null });
  });

  it.each(['failed', 'archived'])('is final at once as %s', (job) => {
    expect(stepAfter(`active@10 ${job}@30`)).toEqual(settled('seen-active'));
  });

  it('is the result at the deadline', () => {
    expect(stepAfter('active@580 completed@590', 600)).toEqual(settled('seen-active'));
  });
});

describe('at the deadline', () => {
  it('an unsettled watch reads once more, and is overdue after that', () => {
    expect(stepAfter('active@590', 600)).toMatchObject({ kind: 'wait', waitMs: 0 });
    expect(stepAfter('active@600')).toEqual({ kind: 'overdue' });
    expect(stepAfter('active@590 500@600')).toEqual({ kind: 'overdue' });
  });

  it('the last read ends the watch where it shows a job that is believed', () => {
    expect(stepAfter('completed@560 completed@600')).toEqual(settled('confirmed'));
    expect(stepAfter('completed@600')).toEqual({ kind: 'overdue' });
  });
});

describe('the second gear', () => {
  const steady = { ...newWatch(JOBS.completed ?? null, 0, 30_000), steady: true, polls: 6 };
  const withTimerPolls = (timerPolls: number | 'all') => ({ ...plan.polling, timerPolls });

  it('comes after the first polls, and never where all are by timers', () => {
    expect(mayPollOn(plan.polling, { ...steady, polls: 5 })).toBe(false);
    expect(mayPollOn(plan.polling, steady)).toBe(true);
    expect(mayPollOn(withTimerPolls(0), { ...steady, polls: 0 })).toBe(true);
    expect(mayPollOn(withTimerPolls('all'), { ...steady, polls: 10_000 })).toBe(false);
  });

  it('waits for the read that follows a change', () => {
    expect(mayPollOn(plan.polling, { ...steady, steady: false })).toBe(false);
  });

  it('absorbs a service that is late with its answer, and no 401, 403 or 404', () => {
    const after = (status: number) => afterReading(steady.trouble, trouble(status), 0);
    const patient = (status: number) => mayPollOn(plan.polling, { ...steady, trouble: after(status) });
    expect([429, 500, 503].map(patient)).toEqual([true, true, true]);
    expect([401, 403, 404].map(patient)).toEqual([false, false, false]);
  });
});
