import { expect, it } from '@jest/globals';
import { Jobs, type NewJob } from '../../sandbox/jobs';
import { seededRandom } from '../../sandbox/random';

/** Returns the job after each time step in milliseconds. At the start, the job receives `messages` messages. */
function jobStates(job: NewJob, messages: number, ...steps: readonly number[]) {
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
const QUEUE = { whileActive: 'queue' } as const;
const LATE_JOB = { turns: [TURN, LATE], status: 'active', ...QUEUE } as const;

const opens = (outcome: 'new-pull-request' | 'no-change' | 'failed') => {
  return { pullRequest: true, turn: { ...TURN, outcome } };
};

it.each<[string, string, NewJob, number, ...number[]]>([
  ['whose turn opens another pull request', 'completed /2', opens('new-pull-request'), 1, 1_000],
  ['whose turn changes nothing', 'completed /1', opens('no-change'), 1, 1_000],
  ['whose turn fails', 'failed /1', opens('failed'), 1, 1_000],
  [
    'that interrupts a running turn',
    'active, completed /1',
    { turns: [{ durationMs: 10_000 }, TURN] },
    2,
    999,
    1,
  ],
  [
    'that waits in the queue until the running turn has ended',
    'active, active, active, completed /1',
    { turn: TURN, ...QUEUE },
    2,
    999,
    1,
    999,
    1,
  ],
  ['whose turn starts late', 'failed, active', { turn: LATE, status: 'failed' }, 1, 499, 1],
  ['whose turn starts late after a running turn', 'active, active, completed /1', LATE_JOB, 1, 999, 1, 1_000],
])('after a message %s, the statuses of the job are: %s', (_, expected, ...job) => {
  const states = jobStates(...job).map((each) => `${each?.status} ${each?.prLink?.slice(-2) ?? ''}`.trim());
  expect(states.join(', ')).toBe(expected);
});
