import { describe, expect, it } from '@jest/globals';
import { Jobs, type NewJob } from '../../sandbox/jobs';
import { seededRandom } from '../../sandbox/random';

/** A job that gets so many messages, and how it is after each of some steps of time, in milliseconds. */
function life(job: NewJob, messages: number, steps: readonly number[]) {
  let now = 0;
  const rules = { now: () => now, random: seededRandom(1), turnMs: 1_000, origin: () => 'http://host' };
  const jobs = new Jobs(rules);
  jobs.add({ projectId: 'p', id: 'j', ...job });
  const life = jobs.find({ projectId: 'p', jobId: 'j' });
  for (let n = 0; n < messages; n += 1) life?.receive('x');
  return steps.map((step) => {
    now += step;
    return life?.job() ?? { status: 'not there', prLink: null };
  });
}

const TURN = { durationMs: 1_000 };
const LATE = { ...TURN, takeUpMs: 500 };
const LATE_JOB = { turns: [TURN, LATE], status: 'active' } as const;
const STEPS = [500, 500, 500];
const QUEUE = { whileActive: 'queue', queueGapMs: 300 } as const;

describe('a message', () => {
  it.each([
    ['new-pull-request', 'completed', 'http://host/pull/2'],
    ['no-change', 'completed', 'http://host/pull/1'],
    ['failed', 'failed', 'http://host/pull/1'],
  ] as const)('whose turn ends as %s leaves the job %s with %s', (outcome, status, prLink) => {
    const [end] = life({ pullRequest: true, turn: { ...TURN, outcome } }, 1, [1_000]);
    expect(end).toMatchObject({ status, prLink });
  });

  it.each<[string, NewJob, number, readonly number[], string]>([
    [
      'interrupts the running turn',
      { turns: [{ durationMs: 10_000 }, TURN] },
      2,
      [999, 1],
      'active completed',
    ],
    [
      'or queues behind it: the earlier turn ends first, and its status shows in the gap',
      { turn: TURN, ...QUEUE },
      2,
      [999, 1, 299, 1, 999, 1],
      'active completed completed active active completed',
    ],
    [
      'that is taken up late changes nothing until then',
      { turn: LATE, status: 'failed' },
      1,
      [499, 1, 999, 1],
      'failed active active completed',
    ],
    ['that is taken up late interrupts what runs then', LATE_JOB, 1, STEPS, 'active active completed'],
    ['or queues behind it', { ...LATE_JOB, ...QUEUE }, 1, STEPS, 'active completed active'],
  ])('%s', (_, job, messages, steps, expected) => {
    expect(life(job, messages, steps).map(({ status }) => status)).toEqual(expected.split(' '));
  });
});
