import { describe, expect, it } from '@jest/globals';
import type { ReadTrouble } from '../../../src/core/activities';
import type { AgentJob } from '../../../src/core/job';
import { record } from '../../../src/workflows/follow-up/poll';
import { newWatch } from '../../../src/workflows/follow-up/state';
import { afterReading } from '../../../src/core/tally';
import { mayPollOn, nextStep } from '../../../src/workflows/follow-up/watch-step';

const completed: AgentJob = {
  id: 'j',
  status: 'completed',
  source: { repository: null, ref: null },
  model: null,
  prLink: null,
  createdAt: null,
  archivedAt: null,
};
const failed: AgentJob = { ...completed, status: 'failed' };
const active: AgentJob = { ...completed, status: 'active' };
const linked: AgentJob = { ...completed, prLink: 'https://example.test/pull/1' };
const http = (httpStatus: number, retryAfterMs?: number): ReadTrouble => ({
  ...{ kind: 'trouble', label: '', message: '', httpStatus },
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
});

const plan = {
  projectId: 'p',
  jobId: 'j',
  requestId: 'r',
  whenActive: 'send',
  onUnknownDelivery: 'fail',
  deadlineMs: 600_000,
  polling: { initialMs: 5_000, growth: 0.1, maximumMs: 300_000, jitter: 0, timerPolls: 6 },
  reconcileMs: 120_000,
  settleMs: 20_000,
  confirmMs: 30_000,
} as const;

/**
 * The step after these answers, each with the second at which it was read. The POST ended at 0, answers are fresh from 30 on,
 * and the deadline is at 600.
 */
function stepAfter(answers: [AgentJob | ReadTrouble, second: number][], nowSecond?: number) {
  const watch = newWatch(completed, 0, 30_000);
  let askedAt = 0;
  for (const [answer, second] of answers) {
    askedAt = second * 1_000;
    const read = 'kind' in answer ? answer : ({ kind: 'job', job: answer } as const);
    watch.trouble = afterReading(watch.trouble, read, askedAt);
    if (read.kind === 'job') record(watch, read.job, askedAt, askedAt);
  }
  const now = nowSecond === undefined ? askedAt : nowSecond * 1_000;
  return nextStep({ plan, deadlineAt: 600_000 }, watch, now, askedAt, () => 0.5);
}

const settled = (evidence: string) => ({ kind: 'settled', evidence });
const waits = (phase: string, waitMs: number) => ({ kind: 'wait', phase, waitMs });

describe('the watch', () => {
  it('polls an active job at the cadence of the turn’s age', () => {
    expect(stepAfter([[active, 10]])).toEqual({ ...waits('watching', 5_000), single: false, evidence: null });
    expect(stepAfter([[active, 200]])).toMatchObject(waits('watching', 20_000));
  });

  it('reads a terminal job at the initial interval, and when an answer becomes fresh', () => {
    expect(stepAfter([[completed, 0]])).toMatchObject({ ...waits('confirming', 5_000), single: true });
    expect(stepAfter([[failed, 28]])).toMatchObject(waits('confirming', 2_000));
    expect(stepAfter([[failed, 30]])).toEqual(settled('status-changed'));
  });

  it('reads a status that must hold at the initial interval, and when the hold is over', () => {
    expect(stepAfter([[completed, 30]])).toMatchObject(waits('confirming', 5_000));
    const held: [AgentJob, number][] = [
      [linked, 30],
      [linked, 58],
    ];
    expect(stepAfter(held)).toMatchObject(waits('confirming', 2_000));
    expect(stepAfter([...held, [linked, 60]])).toEqual(settled('job-changed'));
  });

  it('waits as long as the service asks for, also where an answer would be fresh before', () => {
    expect(
      stepAfter([
        [failed, 20],
        [http(429, 60_000), 25],
      ]),
    ).toMatchObject(waits('confirming', 60_000));
  });

  it('is settled by a believed job with its link', () => {
    expect(
      stepAfter([
        [active, 10],
        [linked, 30],
      ]),
    ).toEqual(settled('seen-active'));
  });

  it('shows a refused key as its phase, whatever the watch is doing', () => {
    expect(stepAfter([[http(401), 20]])).toMatchObject({ phase: 'unauthorized' });
    expect(
      stepAfter([
        [completed, 10],
        [http(403), 20],
      ]),
    ).toMatchObject({ phase: 'unauthorized' });
    expect(stepAfter([[http(503), 20]])).toMatchObject({ phase: 'watching' });
  });

  it('gives a job up after five 404s in a row that span confirm', () => {
    const gone = [10, 20, 25, 35, 40].map((second): [ReadTrouble, number] => [http(404), second]);
    expect(stepAfter([[active, 5], ...gone])).toEqual({ kind: 'lost' });
    expect(stepAfter([[active, 5], ...gone.slice(1)])).toMatchObject({ kind: 'wait', waitMs: 5_000 });
  });
});

describe('a believed job without a link', () => {
  const believed: [AgentJob | ReadTrouble, number][] = [
    [active, 10],
    [completed, 30],
  ];

  it('is read for it until an answer that was asked for at the end of settle shows none', () => {
    const step = { ...waits('settling', 5_000), single: true, evidence: 'seen-active' };
    expect(stepAfter(believed)).toEqual(step);
    expect(stepAfter([...believed, [completed, 48]])).toMatchObject(waits('settling', 2_000));
    expect(stepAfter([...believed, [completed, 50]])).toEqual(settled('seen-active'));
  });

  it('is read on while reads fail: only a readable answer says that there is none', () => {
    const troubled: typeof believed = [...believed, [http(503), 50]];
    expect(stepAfter(troubled, 70)).toMatchObject({ kind: 'wait', phase: 'settling' });
    expect(stepAfter([...troubled, [linked, 71]])).toEqual(settled('seen-active'));
  });

  it('is watched again when it becomes active again', () => {
    expect(stepAfter([...believed, [active, 40]])).toMatchObject({ phase: 'watching', evidence: null });
  });

  it.each([failed, { ...completed, status: 'archived' }])('is final at once as %j', (job) => {
    expect(
      stepAfter([
        [active, 10],
        [job, 30],
      ]),
    ).toEqual(settled('seen-active'));
  });

  it('is the result at the deadline', () => {
    expect(
      stepAfter(
        [
          [active, 580],
          [completed, 590],
        ],
        600,
      ),
    ).toEqual(settled('seen-active'));
  });
});

describe('at the deadline', () => {
  it('an unsettled watch reads once more, and is overdue after that', () => {
    expect(stepAfter([[active, 590]], 600)).toMatchObject({ kind: 'wait', waitMs: 0 });
    expect(stepAfter([[active, 600]])).toEqual({ kind: 'overdue' });
    expect(
      stepAfter([
        [active, 590],
        [http(500), 600],
      ]),
    ).toEqual({ kind: 'overdue' });
  });

  it('the last read ends the watch where it shows a job that is believed', () => {
    expect(
      stepAfter([
        [completed, 560],
        [completed, 600],
      ]),
    ).toEqual(settled('confirmed'));
    expect(stepAfter([[completed, 600]])).toEqual({ kind: 'overdue' });
  });
});

describe('the second gear', () => {
  const steady = { ...newWatch(completed, 0, 30_000), steady: true, polls: 6 };
  const after = (httpStatus: number) => ({
    ...steady,
    trouble: afterReading(steady.trouble, http(httpStatus), 0),
  });
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
    const patient = (status: number) => mayPollOn(plan.polling, after(status));
    expect([429, 500, 503].map(patient)).toEqual([true, true, true]);
    expect([401, 403, 404].map(patient)).toEqual([false, false, false]);
  });
});
