import { expect, it } from '@jest/globals';
import type { ReadTrouble } from '../../../src/core/activities';
import type { AgentJob } from '../../../src/core/job';
import { JOB, PLAN } from '../../harness/samples';
import { mayPollOn } from '../../../src/workflows/follow-up/poll';
import { newWatch, record } from '../../../src/workflows/follow-up/state';
import { afterReading } from '../../../src/core/tally';
import { nextStep } from '../../../src/workflows/follow-up/watch';

const COMPLETED: AgentJob = { ...JOB, status: 'completed' };
const trouble = (httpStatus: number): ReadTrouble => ({
  ...{ kind: 'trouble', label: '', message: '', httpStatus },
});

const polling = { ...PLAN.polling, jitter: 0 };
const plan = { ...PLAN, polling, deadlineMs: 600_000, settleMs: 20_000 };

/** The step after a job or an HTTP status at each of these seconds. The POST ended at 0, and answers are fresh from 30 on. */
function stepAfter(answers: Readonly<Record<number, AgentJob | number>>) {
  const watch = newWatch(COMPLETED, 0, 30_000);
  let askedAt = 0;
  for (const [second, what] of Object.entries(answers)) {
    askedAt = Number(second) * 1_000;
    const read = typeof what === 'number' ? trouble(what) : ({ kind: 'job', job: what } as const);
    watch.trouble = afterReading(watch.trouble, read, askedAt);
    if (read.kind === 'job') record(watch, read.job, askedAt, askedAt);
  }
  return nextStep({ plan, deadlineAt: 600_000 }, watch, askedAt, askedAt);
}

// The simulation has what is believed, settled, lost, and done at the deadline; recorded histories have the other waits.
it.each([
  ['shows a refused key while it confirms too', { 10: COMPLETED, 20: 403 }, ['unauthorized', 5_000]],
  ['reads for a link when settle is over', { 10: JOB, 30: COMPLETED, 48: COMPLETED }, ['settling', 2_000]],
])('the watch %s', (_, answers, [phase, waitMs]) => {
  expect(stepAfter(answers)).toMatchObject({ kind: 'wait', phase, waitMs });
});

// Recorded histories have how many reads come before, and that the job must not change.
it('an activity polls on through a late service, and not after a 401, 403 or 404', () => {
  const steady = { ...newWatch(JOB, 0, 30_000), steady: true, polls: 6 };
  const absorbed = [401, 403, 404, 429, 500].filter((status) =>
    mayPollOn(polling, { ...steady, trouble: afterReading(steady.trouble, trouble(status), 0) }),
  );
  expect(absorbed).toEqual([429, 500]);
});
