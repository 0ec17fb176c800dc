import { describe, expect, it } from '@jest/globals';
import { Jobs, type NewJob } from '../../sandbox/jobs';
import { seededRandom } from '../../sandbox/random';

/** A job that gets so many messages, and how it is after each of some steps of time, in milliseconds. */
function life(job: NewJob, messages: number, ...steps: readonly number[]) {
  let now = 0;
  const rules = { now: () => now, random: seededRandom(1), turnMs: 1_000, origin: () => 'http://host' };
  const jobs = new Jobs(rules);
  jobs.add({ projectId: 'p', id: 'j', ...job });
  const life = jobs.find({ projectId: 'p', jobId: 'j' });
  for (let n = 0; n < messages; n += 1) life?.receive('x');
  return steps.map((step) => {
    now += step;
    return life?.job();
  });
}

const TURN = { durationMs: 1_000 };
const LATE = { ...TURN, takeUpMs: 500 };
const LATE_JOB = { turns: [TURN, LATE], status: 'active' } as const;
const QUEUE = { whileActive: 'queue' } as const;

describe('a message', () => {
  it.each([
    ['new-pull-request', 'completed', 'http://host/pull/2'],
    ['no-change', 'completed', 'http://host/pull/1'],
    ['failed', 'failed', 'http://host/pull/1'],
  ] as const)('whose turn ends as %s leaves the job %s with %s', (outcome, status, prLink) => {
    const [end] = life({ pullRequest: true, turn: { ...TURN, outcome } }, 1, 1_000);
    expect(end).toMatchObject({ status, prLink });
  });

  it.each([
    ['interrupts the running turn', 'active completed', { turns: [{ durationMs: 10_000 }, TURN] }, 2, 999, 1],
    ['or queues behind it', 'active active active completed', { turn: TURN, ...QUEUE }, 2, 999, 1, 999, 1],
    ['taken up late changes nothing yet', 'failed active', { turn: LATE, status: 'failed' }, 1, 499, 1],
    ['taken up late interrupts what runs then', 'active active', LATE_JOB, 1, 999, 1],
    ['or waits for its end', 'active active completed', { ...LATE_JOB, ...QUEUE }, 1, 999, 1, 1_000],
  ] as [string, string, NewJob, number, ...number[]][])('%s: %s', (_, expected, ...job) => {
    expect(life(...job).map((each) => each?.status)).toEqual(expected.split(' '));
  });
});
