import { describe, expect, it } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import type { LimitsChange } from '../../../src/client';
import { BATCH_PRIORITY_KEY } from '../../../src/core/batch/batch';
import { fairnessKey, followUpWorkflowId } from '../../../src/core/ids';
import { FOLLOW_UP_WORKFLOW } from '../../../src/core/names';
import type { FollowUpRequest } from '../../../src/core/request';
import { Environment } from '../../harness/environment';
import { eventually } from '../../harness/eventually';
import { ENDLESS } from '../../harness/following';
import { activities, eventsOf } from '../../harness/reset';

/** Nothing is read after the send as long as a test goes on: what is limited are the sends. */
const SEND_ONLY = {
  deadline: '10m',
  polling: { initial: '5m', growth: 0, maximum: '5m', jitter: 0 },
} satisfies Partial<FollowUpRequest>;

/** A limit is divided among four partitions of a queue, each of which may begin with two at once or a second apart. */
const BURST = 8;

/** So many that most of them still wait when the others have been sent: at two a second for 14 s. */
const MANY = 36;

/** An environment of its own for each test, as limits are of its queues. Two sets of workers share them. */
async function inEnvironment(
  limits: LimitsChange,
  test: (environment: Environment) => Promise<void>,
): Promise<void> {
  const environment = await Environment.open({ workers: 2, sandbox: { messagesPerHour: null } });
  try {
    await environment.followUps.limits.set(limits);
    await test(environment);
  } finally {
    await environment.close();
  }
}

/** Starts so many follow-ups, and waits until each of them has scheduled its send. */
async function scheduled(count: number, start: () => Promise<WorkflowHandle>): Promise<void> {
  const handles = await Promise.all(Array.from({ length: count }, start));
  const isScheduled = (handle: WorkflowHandle) =>
    eventually('the send is scheduled', async () => (await activities(handle)).length > 0);
  await Promise.all(handles.map(isScheduled));
}

/** Follow-ups of one project, whose prompt is its name, all of which have scheduled their send. */
function follow(
  environment: Environment,
  projectId: string,
  count: number,
  prompt = projectId,
): Promise<void> {
  const asked = { ...SEND_ONLY, prompt };
  return scheduled(count, async () => (await environment.follow({ projectId, ...ENDLESS }, asked)).handle);
}

/** The same as items of a batch, which differ from single ones by their priority. */
function followAsBatch(environment: Environment, projectId: string, count: number): Promise<void> {
  return scheduled(count, () => {
    const key = environment.addJob({ projectId, ...ENDLESS });
    return environment.client.workflow.start(FOLLOW_UP_WORKFLOW, {
      taskQueue: environment.taskQueue,
      workflowId: followUpWorkflowId(key.projectId, key.jobId, 'item'),
      priority: { priorityKey: BATCH_PRIORITY_KEY, fairnessKey: fairnessKey(projectId) },
      args: [{ ...key, requestId: 'item', prompt: 'item', ...SEND_ONLY }],
    });
  });
}

/** Waits until so many messages with this prompt have reached the service, and counts those with the other prompt. */
async function sentBefore(
  { sandbox }: Environment,
  [prompt, atLeast]: readonly [string, number],
  other: string,
): Promise<number> {
  const sent = (text: string) =>
    sandbox.journal.entries({ operation: 'message' }).filter((post) => post.prompt?.text === text).length;
  await eventually(`${prompt} is sent`, () => sent(prompt) >= atLeast, { timeoutMs: 40_000 });
  return sent(other);
}

describe('limits', () => {
  it.concurrent('of each project hold over all workers together, and another project is not held up', () =>
    inEnvironment({ sendsPerProject: '4/m' }, async (environment) => {
      await follow(environment, 'limited', MANY);
      await sentBefore(environment, ['limited', 1], 'other');
      for (const other of ['other', 'another']) {
        await follow(environment, other, 1);
        const sent = await sentBefore(environment, [other, 1], 'limited');
        // In the two minutes that the slowest machine takes.
        expect(sent).toBeLessThanOrEqual(BURST + 2 * 4);
      }
    }),
  );

  it.concurrent.each([
    // In the order of their arrival, all of the big one's would go first.
    ['are shared fairly: a small project does not wait for a big one', follow, 'big', 'small'],
    ['let single follow-ups go before the items of a batch', followAsBatch, 'item', 'item'],
  ] as const)('of all projects %s', (_, followMany, many, project) =>
    inEnvironment({ sendsTotal: '2/s' }, async (environment) => {
      await followMany(environment, many, MANY);
      await follow(environment, project, 3, 'few');
      expect(await sentBefore(environment, ['few', 3], many)).toBeLessThan(MANY);
    }),
  );

  it.concurrent('may hold a read up for ten minutes, and not beyond the deadline by more than a minute', () =>
    inEnvironment({ readsTotal: '100/s' }, async (environment) => {
      const soon = { polling: { initial: '100ms' } } as const;
      const far = await environment.follow(ENDLESS, { ...soon, deadline: '24h' });
      const near = await environment.follow(ENDLESS, { ...soon, deadline: '61s', confirm: '1s' });
      expect(await longestReadSeconds(far.handle)).toBe(602);
      expect(await longestReadSeconds(near.handle)).toBeLessThanOrEqual(63);
    }),
  );
});

/** The schedule-to-close of a follow-up's first poll, by its history. */
function longestReadSeconds(handle: WorkflowHandle): Promise<number> {
  return eventually('a poll is scheduled', async () => {
    const scheduled = (await eventsOf(handle))
      .map((event) => event.activityTaskScheduledEventAttributes)
      .find((attributes) => attributes?.activityType?.name === 'getJob');
    return scheduled && Number(scheduled.scheduleToCloseTimeout?.seconds);
  });
}
