import { expect, it, jest } from '@jest/globals';
import type { Worker, WorkerOptions } from '@temporalio/worker';
import { createAgentApi, FollowUpPlugin, keyFromText, shutdownLimitMs } from '../../src/worker/plugin';
import { AGENT_API as agentApi } from '../harness/samples';

/** What the plugin makes of the options of a team's worker. */
function configured(
  worker: WorkerOptions,
  options: Partial<ConstructorParameters<typeof FollowUpPlugin>[0]> = {},
) {
  return new FollowUpPlugin({ agentApi, ...options }).configureWorker(worker);
}

const activityNames = ({ activities }: WorkerOptions) => Object.keys(activities ?? {}).sort();

// test/doors runs a team’s worker with it.
it('a worker with the plugin drains for as long as a send may take, and keeps what it has chosen', () => {
  const { timeoutMs } = agentApi;
  const shutdownForceTime = shutdownLimitMs(timeoutMs);
  const limits = { shutdownGraceTime: 2 * timeoutMs + 5_000, shutdownForceTime };
  expect(configured({ taskQueue: 'team' })).toMatchObject(limits);
  const own = { workflowsPath: '/team/workflows', buildId: 'team-1', shutdownGraceTime: '1m' };
  expect(configured({ taskQueue: 'team', ...own })).toMatchObject(own);
});

it('a worker with the plugin keeps its own activities, and is refused where one has a name of the plugin', () => {
  const own = (...names: string[]) => Object.fromEntries(names.map((name) => [name, () => name]));
  const { announce } = own('announce');
  expect(configured({ taskQueue: 'team', activities: { announce } }).activities).toMatchObject({ announce });
  expect(() =>
    configured({ taskQueue: 'team', activities: own('getJob', 'announce', 'sendMessage') }),
  ).toThrow(
    /^the follow-up plugin has activities of these names too: (getJob, sendMessage|sendMessage, getJob)$/,
  );
});

it('a worker with the plugin has a slot for each poll in its process beside its own', () => {
  const slots = (own: Partial<WorkerOptions>, inProcessPolls = 0) =>
    configured({ taskQueue: 'team', ...own }, { inProcessPolls }).maxConcurrentActivityTaskExecutions;
  const own = { maxConcurrentActivityTaskExecutions: 10 };
  expect([slots({}, 50), slots(own, 50), slots(own)]).toEqual([150, 60, 10]);
});

it.each([
  [
    'hooks.example',
    'whsec_' + 'a'.repeat(32),
    'notify.url must be the http:// or https:// URL of a receiver',
  ],
  ['https://hooks.example', 'not-a-secret', 'must hold one secret, or two with a comma between them'],
])('a worker with the plugin does not poll where it could not tell %s by %s', async (url, secret, words) => {
  const plugin = new FollowUpPlugin({ agentApi, notify: { url, secrets: keyFromText(secret) } });
  plugin.configureWorker({ taskQueue: 'team' });
  const polls = jest.fn(() => Promise.resolve());
  const worker = { options: { taskQueue: 'team', namespace: 'default' } } as unknown as Worker;
  await expect(plugin.runWorker(worker, polls)).rejects.toThrow(words);
  expect(polls).not.toHaveBeenCalled();
});

it.each(['', 'ftp://agents.example', 'https://agents.example/?a=1'])(
  'an agent service can not be at %j',
  (baseUrl) => {
    const create = () =>
      createAgentApi({ baseUrl, apiKey: keyFromText('key_of-the-service'), timeoutMs: 1_000 });
    expect(create).toThrow('baseUrl must be an http:// or https:// URL without query and fragment');
  },
);

it('workers of one process with a task queue each get what their queue is for', () => {
  const taskQueues = { followUp: 'follow-ups', read: 'reads', send: 'sends' };
  const plugin = new FollowUpPlugin({ agentApi, taskQueues, inProcessPolls: 50 });
  const on = (taskQueue: string) => plugin.configureWorker({ taskQueue });
  const [followUps, reads, sends] = [on('follow-ups'), on('reads'), on('sends')];
  expect(activityNames(sends)).toEqual(['sendMessage']);
  expect(activityNames(reads)).toContain('pollJob');
  expect(activityNames(followUps)).toContain('workerSettings');
  expect(followUps.workflowsPath).toBeDefined();
  expect(sends.workflowsPath).toBeUndefined();
  expect(sends.maxConcurrentActivityTaskExecutions).toBeUndefined();
  expect(reads.maxConcurrentActivityTaskExecutions).toBe(150);
  expect(() => on('team')).toThrow(
    new TypeError("the task queue team is not one of the follow-up plugin's: follow-ups, reads, sends"),
  );
});
