import { describe, expect, it } from '@jest/globals';
import type { ReadTrouble } from '../../../src/contract/activities';
import type { AgentJob } from '../../../src/contract/job';
import { afterAnswer } from '../../../src/workflows/evidence';
import { type FollowUpState, initialState, type WatchState } from '../../../src/workflows/state';
import { afterReading } from '../../../src/polling/trouble';
import { mayBePatient, nextStep, watchFrom } from '../../../src/workflows/watch-step';

const completed: AgentJob = {
  id: 'j',
  status: 'completed',
  source: { repository: null, ref: null },
  model: null,
  prLink: null,
  createdAt: null,
  archivedAt: null,
};
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
  const watch: WatchState = watchFrom(completed, 0);
  let lastAskedAt = 0;
  for (const [answer, second] of answers) {
    lastAskedAt = second * 1_000;
    if ('kind' in answer) {
      watch.trouble = afterReading(watch.trouble, answer, lastAskedAt);
      continue;
    }
    state.job = answer;
    watch.trouble = afterReading(watch.trouble, { kind: 'job', job: answer }, lastAskedAt);
    watch.sightings = afterAnswer(watch.sightings, {
      job: answer,
      askedAt: lastAskedAt,
      heardAt: lastAskedAt,
    });
    watch.askedAt = lastAskedAt;
  }
  return nextStep(
    state,
    watch,
    nowSecond === undefined ? lastAskedAt : nowSecond * 1_000,
    lastAskedAt,
    () => 0.5,
  );
}

describe('the watch', () => {
  it('polls an active job at the cadence of the turn’s age', () => {
    expect(stepAfter([[active, 10]])).toEqual({
      kind: 'wait',
      phase: 'watching',
      waitMs: 5_000,
      patient: false,
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
      patient: false,
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

  it('a job whose link is waited for is the result, now', () => {
    const believed: [AgentJob, number][] = [
      [active, 580],
      [{ ...completed, status: 'completed', archivedAt: 'x' }, 590],
    ];
    expect(stepAfter(believed, 600)).toEqual({ kind: 'settled', evidence: 'seen-active' });
  });
});

describe('the second gear', () => {
  const steady = { steady: true, trouble: watchFrom(completed, 0).trouble };
  const after = (answer: ReadTrouble) => ({ ...steady, trouble: afterReading(steady.trouble, answer, 0) });

  it('comes after the first polls, and never where all are by timers', () => {
    expect(mayBePatient(plan.polling, 5, steady)).toBe(false);
    expect(mayBePatient(plan.polling, 6, steady)).toBe(true);
    expect(mayBePatient({ timerPolls: 0 }, 0, steady)).toBe(true);
    expect(mayBePatient({ timerPolls: 'all' }, 10_000, steady)).toBe(false);
  });

  it('has the default in a watch that an earlier release has handed over', () => {
    expect(mayBePatient({}, 5, steady)).toBe(false);
    expect(mayBePatient({}, 6, steady)).toBe(true);
    expect(mayBePatient({}, 6, { trouble: steady.trouble })).toBe(false);
  });

  it('waits for the read that follows a change', () => {
    expect(mayBePatient(plan.polling, 6, { ...steady, steady: false })).toBe(false);
  });

  it('absorbs a service that is late with its answer, and no 401, 403 or 404', () => {
    expect([429, 500, 503].map((status) => mayBePatient(plan.polling, 6, after(http(status))))).toEqual([
      true,
      true,
      true,
    ]);
    expect([401, 403, 404].map((status) => mayBePatient(plan.polling, 6, after(http(status))))).toEqual([
      false,
      false,
      false,
    ]);
  });
});
