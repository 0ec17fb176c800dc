import { describe, expect, it } from '@jest/globals';
import type { ReadTrouble } from '../../../src/core/activities';
import type { AgentJob } from '../../../src/core/job';
import { afterAnswer } from '../../../src/core/evidence';
import { type FollowUpState, initialState, newWatch } from '../../../src/workflows/follow-up/state';
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
const http = (httpStatus: number): ReadTrouble => ({ kind: 'trouble', label: '', message: '', httpStatus });

const plan = {
  projectId: 'p',
  jobId: 'j',
  requestId: 'r',
  whenActive: 'send',
  onUnknownDelivery: 'fail',
  deadlineMs: 600_000,
  polling: { initialMs: 5_000, growth: 0.1, maximumMs: 300_000, jitter: 0, timerPolls: 6 },
  reconcileMs: 120_000,
  settleMs: 30_000,
  confirmMs: 60_000,
} as const;

/** The step after these answers, each with the second at which it was read; the send was at 0, the deadline at 600. */
function stepAfter(answers: [AgentJob | ReadTrouble, second: number][], nowSecond?: number) {
  const state: FollowUpState = { ...initialState(plan, 0), sentAt: 0 };
  const watch = newWatch(completed, 0);
  let lastAskedAt = 0;
  let askedBefore = 0;
  for (const [answer, second] of answers) {
    askedBefore = lastAskedAt;
    lastAskedAt = second * 1_000;
    if ('kind' in answer) {
      watch.trouble = afterReading(watch.trouble, answer, lastAskedAt);
      continue;
    }
    state.job = answer;
    watch.trouble = afterReading(watch.trouble, { kind: 'job', job: answer }, lastAskedAt);
    watch.observations = afterAnswer(watch.observations, {
      job: answer,
      askedAt: lastAskedAt,
      receivedAt: lastAskedAt,
    });
    watch.askedAt = lastAskedAt;
  }
  return nextStep(
    state,
    watch,
    nowSecond === undefined ? lastAskedAt : nowSecond * 1_000,
    [lastAskedAt, askedBefore],
    () => 0.5,
  );
}

describe('the watch', () => {
  it('polls an active job at the cadence of the turn’s age', () => {
    expect(stepAfter([[active, 10]])).toEqual({
      kind: 'wait',
      phase: 'watching',
      waitMs: 5_000,
      single: false,
      evidence: null,
    });
    expect(stepAfter([[active, 200]])).toMatchObject({ phase: 'watching', waitMs: 20_000 });
  });

  it('reads again at the initial interval while a status must hold, and once more at the end of the hold', () => {
    expect(stepAfter([[completed, 0]])).toMatchObject({ phase: 'confirming', waitMs: 5_000 });
    expect(
      stepAfter([
        [completed, 0],
        [completed, 58],
      ]),
    ).toMatchObject({ phase: 'confirming', waitMs: 2_000 });
  });

  it('is settled by a believed job with its link', () => {
    expect(
      stepAfter([
        [active, 10],
        [linked, 20],
      ]),
    ).toEqual({ kind: 'settled', evidence: 'seen-active' });
  });

  it('waits for a late link at the initial interval, not beyond settle, and is settled then', () => {
    const twice: [AgentJob, number][] = [
      [active, 10],
      [{ ...completed, archivedAt: 'x' }, 20],
    ];
    expect(stepAfter(twice)).toEqual({
      kind: 'wait',
      phase: 'settling',
      waitMs: 5_000,
      single: true,
      evidence: 'seen-active',
    });
    expect(stepAfter(twice, 48)).toMatchObject({ phase: 'settling', waitMs: 2_000 });
    expect(stepAfter(twice, 50)).toEqual({ kind: 'settled', evidence: 'seen-active' });
  });

  it('shows a refused key as its phase, whatever the watch is doing', () => {
    expect(
      stepAfter([
        [active, 10],
        [http(401), 20],
      ]),
    ).toMatchObject({ kind: 'wait', phase: 'unauthorized' });
    expect(
      stepAfter([
        [completed, 10],
        [http(403), 20],
      ]),
    ).toMatchObject({ kind: 'wait', phase: 'unauthorized' });
    expect(
      stepAfter([
        [active, 10],
        [http(503), 20],
      ]),
    ).toMatchObject({ kind: 'wait', phase: 'watching' });
  });

  it('gives a job up after five 404s in a row that span confirm', () => {
    const gone = [10, 25, 40, 55, 70].map((second): [ReadTrouble, number] => [http(404), second]);
    expect(stepAfter([[active, 5], ...gone])).toEqual({ kind: 'lost' });
    expect(stepAfter([[active, 5], ...gone.slice(1)])).toMatchObject({ kind: 'wait', waitMs: 5_000 });
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
        [active, 590],
        [linked, 600],
      ]),
    ).toEqual({ kind: 'settled', evidence: 'seen-active' });
    expect(
      stepAfter([
        [completed, 530],
        [completed, 600],
      ]),
    ).toEqual({ kind: 'settled', evidence: 'confirmed' });
  });

  it('a changed status that one more equal read would prove is read once more, and not again', () => {
    expect(stepAfter([[failed, 600]])).toMatchObject({ kind: 'wait', waitMs: 0 });
    expect(
      stepAfter([
        [failed, 600],
        [failed, 601],
      ]),
    ).toEqual({ kind: 'settled', evidence: 'status-changed' });
    expect(
      stepAfter([
        [failed, 600],
        [{ ...failed, prLink: 'https://example.test/pull/2' }, 601],
      ]),
    ).toEqual({ kind: 'overdue' });
  });

  it('a job whose link is waited for is the result, now', () => {
    const believed: [AgentJob, number][] = [
      [active, 580],
      [{ ...completed, status: 'completed', archivedAt: 'x' }, 590],
    ];
    expect(stepAfter(believed, 600)).toEqual({ kind: 'settled', evidence: 'seen-active' });
  });
});

describe('the second gear', () => {
  const steady = { ...newWatch(completed, 0), steady: true, polls: 6 };
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
