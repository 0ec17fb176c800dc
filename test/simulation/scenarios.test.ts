import { beforeAll, expect, it } from '@jest/globals';
import { buildCase } from './oracle/case';
import type { Fault, Plan, PlannedJob } from './plan';
import { bundleWorkflows, FOLLOW_UPS } from './simulate';

/* Worlds whose operations are chosen for one rule that random worlds seldom reach. */

let workflows: Awaited<ReturnType<typeof bundleWorkflows>>;

beforeAll(async () => {
  workflows = await bundleWorkflows();
});

interface Scenario {
  readonly request: Partial<Plan['request']>;
  readonly job?: Partial<PlannedJob>;
  readonly operations: Plan['operations'];
}

/** Plays a world with one worker, an idle job and the given differences. The seed determines only the durations of calls. */
async function play({ request, job, operations }: Scenario) {
  const plan = FOLLOW_UPS.draw(1);
  const idle = { status: 'completed', activeMs: null, lagMs: 0, faults: [] } as const;
  const { world, violations } = await FOLLOW_UPS.play(
    {
      ...plan,
      ...{ startDelayMs: 0, lock: null, workers: 1, suggestFrom: 4_096, operations },
      request: { ...plan.request, whenActive: 'send', ...request },
      jobs: [{ ...plan.jobs[0], ...idle, ...job }],
    },
    workflows,
  );
  expect(violations).toEqual([]);
  return world;
}

const LOST_POST: Fault = {
  ...{ method: 'post' as const, after: 0, count: 1, isIntermittent: false },
  effect: { kind: 'reset', processed: false },
};

it.each([
  ['resolveDelivery', { kind: 'decide', decision: 'delivered', names: 'latest' }],
  ['extendDeadline', { kind: 'extend', duration: '1h' }],
] as const)('%s is rejected after the follow-up has decided to end', async (_, operation) => {
  const world = await play({
    request: { onUnknownDelivery: 'ask', reconcileTimeout: '0s' },
    job: { faults: [LOST_POST] },
    operations: [
      { at: 'phase needs-decision', nth: 1, afterMs: 1_000, operation: { kind: 'cancel' } },
      { at: 'phase cancelled', nth: 1, afterMs: 0, operation },
    ],
  });
  expect(world.performed.at(-1)?.answer).toMatchObject({ kind: 'rejected' });
});

it('the reads of a pollJob that timed out are counted', async () => {
  const polling = { initial: '5s', growth: 0, maximum: '5s', jitter: 0, timerPolls: 1 } as const;
  const world = await play({
    request: { deadline: '10m', maxStaleness: '1s', polling },
    job: { turns: [{ durationMs: 3_600_000, outcome: 'no-change', takeUpMs: 0 }] },
    operations: [
      {
        ...{ at: 'phase watching', nth: 1, afterMs: 300_000 },
        operation: { kind: 'hold queue', queue: 'reads', ms: 36_000_000 },
      },
    ],
  });
  const reads = world.service.requests.filter(({ point }) => point === 'poll' || point === 'read').length;
  expect(reads).toBeGreaterThan(20);
  expect(buildCase(world).end.receipt?.responseCounts.active).toBe(reads);
});

it('after another client completed the send activity, the first read is fresh also for a POST that is made later', async () => {
  const world = await play({
    request: { deadline: '30m', maxStaleness: '30s', onUnknownDelivery: 'assume-delivered' },
    operations: [
      {
        ...{ at: 'post requested', nth: 1, afterMs: 0 },
        operation: { kind: 'complete by hand', activity: 'sendMessage', value: 'done' },
      },
    ],
  });
  const { posts, polls } = buildCase(world);
  const waitedMs = (polls[0]?.requestedAt ?? NaN) - (posts[0]?.requestedAt ?? NaN);
  // The send permission is valid for 10 s, the HTTP timeout is 30 s, and maxStaleness is 30 s.
  expect(waitedMs).toBeGreaterThanOrEqual(70_000);
});
