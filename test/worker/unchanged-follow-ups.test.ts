import { expect, it } from '@jest/globals';
import type { Phase } from '../../src/contract/result';
import { type OpenRun, UnchangedFollowUps } from '../../src/worker/unchanged-follow-ups';

const NOW = Date.parse('2026-11-21T12:00:00Z');
const MINUTE = 60_000;

interface SimulatedRun extends OpenRun {
  readonly phase: Phase;
  readonly changedAt: number;
}

/** Creates a run. Times are in minutes before {@link NOW}. */
function run(id: string, startedAgo: number, changedAgo: number, phase: Phase = 'watching'): SimulatedRun {
  const [startedAt, changedAt] = [NOW - startedAgo * MINUTE, NOW - changedAgo * MINUTE];
  return { workflowId: `workflow ${id}`, runId: id, jobStatus: 'active', phase, startedAt, changedAt };
}

/** Simulates the Temporal server: the visibility list has the latest start first, and each history has the last change. */
class SimulatedServer {
  lists = 0;
  readonly readRuns: string[] = [];
  /** A run that has ended, and that the list still shows. */
  endedRunId: string | null = null;
  /** A run whose history can't be read. */
  failingRunId: string | null = null;
  readonly unchanged = new UnchangedFollowUps({
    list: (phase, until, limit) => {
      this.lists += 1;
      const found = this.runs.filter((each) => each.phase === phase && each.startedAt <= until);
      found.sort((one, other) => other.startedAt - one.startedAt);
      return Promise.resolve(found.slice(0, limit));
    },
    readLastChange: ({ runId }) => {
      this.readRuns.push(runId);
      if (runId === this.failingRunId) return Promise.reject(new Error('unavailable'));
      const found = this.runs.find((each) => each.runId === runId && runId !== this.endedRunId);
      return Promise.resolve(found?.changedAt ?? null);
    },
  });

  constructor(public runs: readonly SimulatedRun[]) {}

  /** Returns the longest time without a change in a phase, in minutes. Null without an open follow-up. */
  async measure(now = NOW, phase: Phase = 'watching'): Promise<number | null> {
    const changedAt = await this.unchanged.findEarliestLastChange(phase, now);
    return changedAt === null ? null : (now - changedAt) / MINUTE;
  }
}

it.each<[string, SimulatedRun[], number | null]>([
  ['no follow-up is open', [], null],
  ['the only follow-up has changed 10 minutes ago', [run('a', 60, 10)], 10],
  ['a later follow-up has not changed for longer', [run('a', 60, 10), run('b', 50, 40)], 40],
  ['the older follow-up is in another phase', [run('a', 90, 90, 'confirming'), run('b', 50, 40)], 40],
  ['a follow-up has been open for two years', [run('a', 2 * 366 * 24 * 60, 500_000)], 500_000],
])('the longest time without a change in a phase is correct if %s', async (_, runs, minutes) => {
  expect(await new SimulatedServer(runs).measure()).toBe(minutes);
});

it('a failed request does not repeat the earlier reads of the same measurement', async () => {
  const server = new SimulatedServer([run('a', 60, 10), run('b', 50, 5), run('c', 40, 30)]);
  server.failingRunId = 'b';
  await expect(server.measure()).rejects.toThrow('unavailable');
  server.failingRunId = null;
  expect(await server.measure()).toBe(30);
  expect(server.readRuns).toEqual(['a', 'b', 'b', 'c']);
});

it('a history is read once for each change of the phase or the job, and the age increases in between', async () => {
  const server = new SimulatedServer([run('a', 60, 10)]);
  expect(await server.measure()).toBe(10);
  expect(await server.measure(NOW + 5 * MINUTE)).toBe(15);
  expect(server.readRuns).toEqual(['a']);
  server.runs = [{ ...run('a', 60, -6), jobStatus: 'blocked' }];
  expect(await server.measure(NOW + 10 * MINUTE)).toBe(4);
  expect(server.readRuns).toEqual(['a', 'a']);
});

it('the age decreases when the follow-up that has not changed for the longest time ends', async () => {
  const server = new SimulatedServer([run('a', 60, 50), run('b', 40, 30)]);
  expect(await server.measure()).toBe(50);
  server.runs = server.runs.slice(1);
  expect(await server.measure(NOW + 5 * MINUTE)).toBe(35);
  server.runs = [];
  expect(await server.measure(NOW + 10 * MINUTE)).toBeNull();
});

it('a follow-up that ends between the list and the read of its history does not count', async () => {
  const server = new SimulatedServer([run('a', 60, 50), run('b', 40, 30)]);
  server.endedRunId = 'a';
  expect(await server.measure()).toBe(30);
});

it('with 10,000 open follow-ups, the frozen one that started first is found with few requests, and the next measurements need one list', async () => {
  const others = Array.from({ length: 9_999 }, (_, number) => run(`${number}`, 600 - number / 20, 1));
  const server = new SimulatedServer([...others, run('frozen', 601, 599)]);
  expect(await server.measure()).toBe(599);
  const { length } = server.readRuns;
  expect(length).toBeLessThanOrEqual(50);
  expect(server.lists).toBeLessThan(31);
  const listsBefore = server.lists;
  expect(await server.measure(NOW + 5 * MINUTE)).toBe(604);
  expect(server.lists - listsBefore).toBe(1);
  expect(server.readRuns).toHaveLength(length);
});

it('of 10,000 follow-ups that started at the same time, at least 25 are examined', async () => {
  const server = new SimulatedServer(Array.from({ length: 10_000 }, (_, number) => run(`${number}`, 60, 1)));
  expect(await server.measure()).toBe(1);
  expect(new Set(server.readRuns).size).toBeGreaterThanOrEqual(25);
  expect(server.readRuns.length).toBeLessThanOrEqual(75);
});

it('as the follow-ups that started first end, the next ones are examined', async () => {
  const all = Array.from({ length: 1_000 }, (_, number) =>
    run(`${number}`, 2_000 - number, 1_000 - number / 2),
  );
  const server = new SimulatedServer(all);
  for (const ended of [0, 30, 60, 500, 990, 999]) {
    server.runs = all.slice(ended);
    expect(await server.measure()).toBe(1_000 - ended / 2);
  }
});
