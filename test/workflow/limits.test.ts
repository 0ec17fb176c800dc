import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { FollowUpClient } from '../../src/client';
import { BATCH_PRIORITY_KEY } from '../../src/core/batch';
import { fairnessKey, followUpWorkflowId } from '../../src/core/ids';
import { FOLLOW_UP_WORKFLOW } from '../../src/core/names';
import type { FollowUpRequest } from '../../src/core/request';
import type { LimitsChange } from '../../src/client';
import type { WorkflowHandle } from '@temporalio/client';
import { eventually } from '../harness/eventually';
import { Environment, type EnvironmentOptions } from '../harness/environment';

/** A queue's partitions: a limit is divided among them, and each may begin with a burst of a second's worth, or one. */
const PARTITIONS = 4;

/** Nothing is read after the send as long as a test goes on: what is measured are the sends. */
const SEND_ONLY = {
  deadline: '10m',
  polling: { initial: '5m', growth: 0, maximum: '5m', jitter: 0 },
} satisfies Partial<FollowUpRequest>;

const endless = { turn: { durationMs: null } };

/** A environment of its own for each test: limits are of its queues. */
async function inEnvironment(
  limits: LimitsChange,
  options: EnvironmentOptions,
  test: (environment: Environment) => Promise<void>,
): Promise<void> {
  const environment = await Environment.open({ ...options, sandbox: { messagesPerHour: null } });
  try {
    const { client, taskQueues } = environment;
    const queues = { readTaskQueue: taskQueues.read, sendTaskQueue: taskQueues.send };
    await new FollowUpClient(client, queues).limits.set(limits);
    await test(environment);
  } finally {
    await environment.close();
  }
}

/** Follow-ups of one project, all of which have scheduled their send. */
async function follow(environment: Environment, projectId: string, count: number): Promise<void> {
  const followings = await Promise.all(
    Array.from({ length: count }, () => environment.follow({ projectId, ...endless }, SEND_ONLY)),
  );
  await Promise.all(followings.map(({ handle }) => sendScheduled(handle)));
}

/** Waits until a follow-up has scheduled its send. */
async function sendScheduled(handle: WorkflowHandle) {
  return eventually('the send is scheduled', async () => {
    const { events } = await handle.fetchHistory();
    return events?.find((event) => event.activityTaskScheduledEventAttributes)
      ?.activityTaskScheduledEventAttributes;
  });
}

/** The same as items of a batch, which differ from single ones by their priority. */
async function followAsBatch(environment: Environment, projectId: string, count: number): Promise<void> {
  const start = () => {
    const { jobId } = environment.sandbox.addJob({ projectId, ...endless });
    const requestId = randomUUID().slice(0, 8);
    return environment.client.workflow.start(FOLLOW_UP_WORKFLOW, {
      taskQueue: environment.taskQueue,
      workflowId: followUpWorkflowId(projectId, jobId, requestId),
      priority: { priorityKey: BATCH_PRIORITY_KEY, fairnessKey: fairnessKey(projectId) },
      args: [{ projectId, jobId, requestId, prompt: 'Fix the broken links.', ...SEND_ONLY }],
    });
  };
  const handles = await Promise.all(Array.from({ length: count }, start));
  await Promise.all(handles.map(sendScheduled));
}

/** The POSTs of a project once there are `atLeast`. */
function sent({ sandbox }: Environment, projectId: string, atLeast: number) {
  return sandbox.journal.waitFor({ projectId, operation: 'message' }, { atLeast, timeoutMs: 20_000 });
}

/** How many POSTs of a project there were up to now. */
function sentSoFar({ sandbox }: Environment, projectId: string): number {
  return sandbox.journal.entries({ projectId, operation: 'message' }).length;
}

describe('limits', () => {
  it('of each project hold over all workers together, and another project is not held up', async () => {
    await inEnvironment({ sendsPerProject: '2/s' }, { workers: 2 }, async (environment) => {
      await follow(environment, 'limited', 18);
      await follow(environment, 'other', 1);
      const before = sentSoFar(environment, 'limited');
      await sent(environment, 'other', 1);
      expect(sentSoFar(environment, 'limited') - before).toBeLessThan(6);

      const times = (await sent(environment, 'limited', 16)).map(({ time }) => Date.parse(time));
      // Each partition sends one at once, another one a second later, and then one in two seconds.
      const burst = 2 * PARTITIONS;
      expect(mostWithin(times, 2_000)).toBeLessThanOrEqual(2 * 2 + burst);
      expect((times[15] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(((16 - burst) / 2) * 1_000 - 500);
    });
  });

  it('of all projects are shared fairly: a small project does not wait for a big one', async () => {
    await inEnvironment({ sendsTotal: '4/s' }, {}, async (environment) => {
      await follow(environment, 'big', 70);
      await follow(environment, 'small', 3);
      const before = sentSoFar(environment, 'big');
      await sent(environment, 'small', 3);
      expect(sentSoFar(environment, 'big')).toBeLessThan(60);
      expect(sentSoFar(environment, 'big') - before).toBeLessThan(20);
    });
  });

  it('let single follow-ups go before the items of a batch, in the same project too', async () => {
    await inEnvironment({ sendsTotal: '4/s' }, {}, async (environment) => {
      await followAsBatch(environment, 'mixed', 70);
      const singles = await Promise.all(
        [1, 2, 3].map(() => environment.follow({ projectId: 'mixed', ...endless }, SEND_ONLY)),
      );
      await Promise.all(singles.map(({ handle }) => sendScheduled(handle)));
      const before = sentSoFar(environment, 'mixed');
      for (const { key } of singles) {
        await environment.sandbox.journal.waitFor({ ...key, operation: 'message' }, { timeoutMs: 20_000 });
      }
      expect(sentSoFar(environment, 'mixed')).toBeLessThan(60);
      expect(sentSoFar(environment, 'mixed') - before).toBeLessThan(20);
    });
  });

  it('may hold a read up for ten minutes, and not beyond the deadline by more than a minute', async () => {
    await inEnvironment({ readsTotal: '100/s' }, { httpTimeoutMs: 2_000 }, async (environment) => {
      const soon = { polling: { initial: '100ms' } } as const;
      const far = await environment.follow(endless, { ...soon, deadline: '24h' });
      const near = await environment.follow(endless, { ...soon, deadline: '61s', confirm: '1s' });

      expect(await longestReadSeconds(far.handle)).toBe(602);
      expect(await longestReadSeconds(near.handle)).toBeLessThanOrEqual(63);
    });
  });
});

/** The schedule-to-close of a follow-up's first poll, by its history. */
async function longestReadSeconds(handle: WorkflowHandle): Promise<number> {
  return eventually('a poll is scheduled', async () => {
    const { events } = await handle.fetchHistory();
    const scheduled = (events ?? [])
      .map((event) => event.activityTaskScheduledEventAttributes)
      .find((attributes) => attributes?.activityType?.name === 'getJob');
    return scheduled && Number(scheduled.scheduleToCloseTimeout?.seconds);
  });
}

/** The most of some times, in milliseconds, that lie in one window. */
function mostWithin(times: readonly number[], windowMs: number): number {
  return Math.max(
    ...times.map((from) => times.filter((time) => time >= from && time < from + windowMs).length),
  );
}
