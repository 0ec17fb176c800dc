import { describe, expect, it } from '@jest/globals';
import { Jobs, type NewJob } from '../../sandbox/jobs';
import { seededRandom } from '../../sandbox/random';

const START = Date.parse('2026-01-01T00:00:00Z');

/** A job whose clock stands still until the test moves it. */
function life(job: NewJob, seed = 1) {
  const clock = { now: START };
  const rules = {
    now: () => clock.now,
    random: seededRandom(seed),
    turnMs: 1_000,
    origin: () => 'http://host',
  };
  const jobs = new Jobs(rules);
  const key = { projectId: 'p', jobId: 'j' };
  jobs.add({ projectId: 'p', id: 'j', ...job });
  const life = jobs.find(key);
  if (life === undefined) throw new Error('the job was not added');
  return { clock, jobs, key, life };
}

const TURN = { durationMs: 1_000 };

describe('a turn', () => {
  it('is active until its time is over, then completed with a pull request', () => {
    const { clock, life: job } = life({ turn: TURN });
    job.receive('x');
    clock.now += 999;
    expect(job.job()).toMatchObject({ status: 'active', prLink: null });
    clock.now += 1;
    expect(job.job()).toMatchObject({ status: 'completed', prLink: 'http://host/pull/1' });
  });

  it('keeps the pull request that the job has, so that before and after are the same', () => {
    const { clock, life: job } = life({ turn: TURN, pullRequest: true });
    const before = job.job();
    job.receive('more');
    clock.now += 1_000;
    expect(job.job()).toEqual(before);
  });

  it('leaves a link to somewhere else alone', () => {
    const { clock, life: job } = life({ turn: TURN, prLink: 'https://elsewhere/1' });
    job.receive('more');
    clock.now += 1_000;
    expect(job.job().prLink).toBe('https://elsewhere/1');
  });

  it.each([
    ['new-pull-request', 'completed', 'http://host/pull/2'],
    ['no-change', 'completed', 'http://host/pull/1'],
    ['failed', 'failed', 'http://host/pull/1'],
  ] as const)('that ends as %s leaves the job %s with %s', (outcome, status, prLink) => {
    const { clock, life: job } = life({ pullRequest: true, turn: { ...TURN, outcome } });
    job.receive('x');
    clock.now += 1_000;
    expect(job.job()).toMatchObject({ status, prLink });
  });

  it('that changes nothing leaves a job without a link without one', () => {
    const { clock, life: job } = life({ turn: { ...TURN, outcome: 'no-change' } });
    job.receive('x');
    clock.now += 1_000;
    expect(job.job()).toMatchObject({ status: 'completed', prLink: null });
  });

  it('follows its plan, and the last plan repeats', () => {
    const { clock, life: job } = life({
      turns: [
        { ...TURN, outcome: 'failed' },
        { ...TURN, outcome: 'no-change' },
      ],
    });
    const statuses = ['one', 'two', 'three'].map((prompt) => {
      job.receive(prompt);
      clock.now += 1_000;
      return job.job().status;
    });
    expect(statuses).toEqual(['failed', 'completed', 'completed']);
    expect(job.turns().map(({ number }) => number)).toEqual([1, 2, 3]);
  });

  it('without a duration takes what the seed says, within a fifth, and the same again', () => {
    const durations = [1, 1, 2].map((seed) => {
      const { life: job } = life({}, seed);
      job.receive('x');
      return job.turns()[0]?.durationMs;
    });
    expect(durations[0]).toBe(durations[1]);
    expect(durations[0]).not.toBe(durations[2]);
    for (const duration of durations) expect(Math.abs((duration ?? 0) - 1_000)).toBeLessThanOrEqual(200);
  });

  it('with the duration null never ends by itself', () => {
    const { clock, life: job, jobs, key } = life({ turn: { durationMs: null } });
    job.receive('x');
    clock.now += 10 ** 12;
    expect(job.job().status).toBe('active');
    jobs.change(key, { status: 'completed', prLink: 'https://elsewhere/2' });
    expect(job.job()).toMatchObject({ status: 'completed', prLink: 'https://elsewhere/2' });
    expect(job.turns()[0]?.state).toBe('interrupted');
  });
});

describe('a message to an active job', () => {
  it('interrupts the running turn, whose work is lost, and counts as a turn', () => {
    const { clock, life: job } = life({ turn: TURN });
    job.receive('first');
    clock.now += 500;
    job.receive('second');
    clock.now += 500;
    expect(job.job().status).toBe('active');
    clock.now += 500;
    expect(job.job().status).toBe('completed');
    expect(job.turns().map(({ state }) => state)).toEqual(['interrupted', 'ended']);
  });

  it('or queues behind it: the earlier turn ends first, and its status shows in the gap', () => {
    const { clock, life: job } = life({ turn: TURN, whileActive: 'queue', queueGapMs: 300 });
    job.receive('first');
    job.receive('second');
    const seen = [999, 1, 299, 1, 999, 1].map((step) => {
      clock.now += step;
      return job.job().status;
    });
    expect(seen).toEqual(['active', 'completed', 'completed', 'active', 'active', 'completed']);
  });

  it('is caught up with in the right order however late somebody looks', () => {
    const { clock, life: job } = life({ turn: TURN, whileActive: 'queue', queueGapMs: 300 });
    job.receive('first');
    job.receive('second');
    job.receive('third');
    clock.now += 60_000;
    expect(job.job().status).toBe('completed');
    expect(job.turns().map(({ endedAt }) => (endedAt ?? 0) - START)).toEqual([1_000, 2_300, 3_600]);
  });

  it('a job that starts active is in a turn that no message started', () => {
    const { clock, life: job } = life({ status: 'active', turn: TURN });
    expect(job.job().status).toBe('active');
    expect(job.turns()).toMatchObject([{ number: 0, prompt: null }]);
    clock.now += 1_000;
    expect(job.job().status).toBe('completed');
  });
});

describe('a message that is taken up later than it is accepted', () => {
  const LATE = { ...TURN, takeUpMs: 500 };

  function statusesOf({ clock, life: job }: ReturnType<typeof life>, steps: readonly number[]) {
    return steps.map((step) => {
      clock.now += step;
      return job.job().status;
    });
  }

  it('changes nothing until then', () => {
    const one = life({ turn: LATE, status: 'failed' });
    one.life.receive('x');
    expect(statusesOf(one, [499, 1, 999, 1])).toEqual(['failed', 'active', 'active', 'completed']);
    expect(one.life.turns()).toMatchObject([{ takenUpAt: START + 500, startedAt: START + 500 }]);
  });

  it('interrupts what runs when it is taken up, or queues behind it', () => {
    for (const [whileActive, statuses] of [
      ['interrupt', ['active', 'active', 'completed']],
      ['queue', ['active', 'completed', 'active']],
    ] as const) {
      const one = life({ turns: [TURN, LATE], status: 'active', whileActive, queueGapMs: 300 });
      one.life.receive('x');
      const [first] = one.life.turns();
      expect([whileActive, ...statusesOf(one, [500, 500, 500])]).toEqual([whileActive, ...statuses]);
      expect(one.life.turns()[0]?.endedAt).toBe(START + (whileActive === 'queue' ? 1_000 : 500));
      expect(first?.state).toBe('running');
    }
  });

  it('is not lost when somebody changes the job before', () => {
    const one = life({ turn: LATE });
    one.life.receive('x');
    one.jobs.change(one.key, { status: 'archived' });
    expect(statusesOf(one, [499, 1, 1_000])).toEqual(['archived', 'active', 'completed']);
  });
});

describe('what a job was', () => {
  it('is known for every moment, and undefined where nothing has changed since', () => {
    const { clock, life: job, jobs, key } = life({ turn: TURN, status: 'failed' });
    job.receive('x');
    clock.now += 5_000;
    jobs.change(key, { status: 'archived' });
    clock.now += 5_000;
    const at = [-1, 0, 999, 1_000, 4_999, 5_000].map((ms) => job.jobAt(START + ms)?.status);
    expect(at).toEqual(['failed', 'active', 'active', 'completed', 'completed', undefined]);
    expect(job.changes().map(({ job: { status } }) => status)).toEqual([
      'failed',
      'active',
      'completed',
      'archived',
    ]);
    expect(job.changes().at(-1)?.job).toEqual(job.job());
  });

  it('is forgotten when it is long ago, and the oldest that is kept stands for it', () => {
    const { clock, life: job, jobs, key } = life({ status: 'failed' });
    for (let i = 0; i < 300; i += 1) {
      clock.now += 1;
      jobs.change(key, { status: i % 2 === 0 ? 'completed' : 'archived' });
    }
    expect(job.changes()).toHaveLength(200);
    expect(job.jobAt(START)).toEqual(job.changes()[0]?.job);
  });
});

describe('a turn that counts its reads', () => {
  it('ends with the answer to the last of them, whatever time that takes', () => {
    const { clock, life: job } = life({ turn: { reads: 2 } });
    for (const prompt of ['first', 'second']) {
      job.receive(prompt);
      clock.now += 10 ** 9;
      expect([job.read().status, job.job().status, job.read().status]).toEqual([
        'active',
        'active',
        'completed',
      ]);
    }
  });
});

describe('a change by hand', () => {
  it('archives and brings back', () => {
    const { life: job, jobs, key } = life({});
    jobs.change(key, { status: 'archived' });
    expect(job.job()).toMatchObject({ status: 'archived', archivedAt: '2026-01-01T00:00:00.000Z' });
    jobs.change(key, { status: 'completed' });
    expect(job.job()).toMatchObject({ status: 'completed', archivedAt: null });
  });

  it('can start a turn and take a link away', () => {
    const { life: job, jobs, key } = life({ pullRequest: true });
    jobs.change(key, { status: 'active' });
    expect(job.job().status).toBe('active');
    jobs.change(key, { status: 'failed', prLink: null });
    expect(job.job()).toMatchObject({ status: 'failed', prLink: null });
  });
});
