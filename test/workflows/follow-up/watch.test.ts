import { expect, it } from '@jest/globals';
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
  linked: { ...JOB, status: 'completed', prLink: 'https://example.test/pull/1' },
};
const trouble = (httpStatus: number): ReadTrouble => ({
  ...{ kind: 'trouble', label: '', message: '', httpStatus },
});

const polling = { ...PLAN.polling, jitter: 0 };
const plan = { ...PLAN, polling, deadlineMs: 600_000, settleMs: 20_000 };

/**
 * The step after these answers, each a job or an HTTP status with the second at which it was read: `active@10 503@20`. The
 * POST ended at 0, answers are fresh from 30 on, and the deadline is at 600.
 */
function stepAfter(answers: string) {
  const watch = newWatch(JOBS.completed ?? null, 0, 30_000);
  let askedAt = 0;
  for (const [, what = '', second] of answers.matchAll(/(\w+)@(\d+)/g)) {
    askedAt = Number(second) * 1_000;
    const job = JOBS[what];
    const read = job === undefined ? trouble(Number(what)) : ({ kind: 'job', job } as const);
    watch.trouble = afterReading(watch.trouble, read, askedAt);
    if (job !== undefined) record(watch, job, askedAt, askedAt);
  }
  return nextStep({ plan, deadlineAt: 600_000 }, watch, askedAt, askedAt, () => 0.5);
}

const waits = (phase: string, waitMs: number) => ({ kind: 'wait', phase, waitMs });

// The simulation has what is believed, settled, lost, and done at the deadline.
it.each([
  ['polls an active job at the cadence of the turn’s age', 'active@200', waits('watching', 20_000)],
  ['reads a terminal job when an answer becomes fresh', 'failed@28', waits('confirming', 2_000)],
  ['reads one that must hold when the hold is over', 'linked@30 linked@58', waits('confirming', 2_000)],
  ['shows a refused key while it confirms too', 'completed@10 403@20', waits('unauthorized', 5_000)],
  ['reads for a link when settle is over', 'active@10 completed@30 completed@48', waits('settling', 2_000)],
])('the watch %s: %s', (_, answers, step) => {
  expect(stepAfter(answers)).toMatchObject(step);
});

const steady = { ...newWatch(JOB, 0, 30_000), steady: true, polls: 6 };

it('an activity polls on after the first polls, while nothing changes, and never where all are by timers', () => {
  const withTimerPolls = (timerPolls: number | 'all') => ({ ...polling, timerPolls });
  expect(mayPollOn(polling, { ...steady, polls: 5 })).toBe(false);
  expect(mayPollOn(polling, steady)).toBe(true);
  expect(mayPollOn(polling, { ...steady, steady: false })).toBe(false);
  expect(mayPollOn(withTimerPolls(0), { ...steady, polls: 0 })).toBe(true);
  expect(mayPollOn(withTimerPolls('all'), { ...steady, polls: 10_000 })).toBe(false);
});

it('an activity polls on through a late service, and not after a 401, 403 or 404', () => {
  const absorbed = [401, 403, 404, 429, 500].filter((status) =>
    mayPollOn(polling, { ...steady, trouble: afterReading(steady.trouble, trouble(status), 0) }),
  );
  expect(absorbed).toEqual([429, 500]);
});
