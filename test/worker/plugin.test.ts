import { describe, expect, it, jest } from '@jest/globals';
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

describe('a worker with the plugin', () => {
  it('gets the workflows, and all activities beside its own', () => {
    const own = () => Promise.resolve();
    const worker = configured({ taskQueue: 'team', activities: { own } });
    expect(worker.workflowsPath).toMatch(/workflows$/);
    const names = ['own', 'pollJob', 'sendMessage', 'workerSettings'];
    expect(activityNames(worker)).toEqual(expect.arrayContaining(names));
  });

  it('keeps the workflows that it has, and every other option', () => {
    const own = { workflowsPath: '/team/workflows', maxCachedWorkflows: 7, buildId: 'team-1' };
    expect(configured({ taskQueue: 'team', ...own })).toMatchObject(own);
    const bundled = configured({ taskQueue: 'team', workflowBundle: { codePath: '/team/bundle.js' } });
    expect(bundled.workflowsPath).toBeUndefined();
  });

  it('drains for as long as a send may take, unless it says otherwise', () => {
    const { timeoutMs } = agentApi;
    const limits = {
      shutdownGraceTime: 2 * timeoutMs + 5_000,
      shutdownForceTime: shutdownLimitMs(timeoutMs),
    };
    expect(configured({ taskQueue: 'team' })).toMatchObject(limits);
    const own = { taskQueue: 'team', shutdownGraceTime: '1m' };
    expect(configured(own)).toMatchObject(own);
  });

  it('has a slot for each poll in its process beside its own', () => {
    const options = { inProcessPolls: 50 };
    expect(configured({ taskQueue: 'team' }, options).maxConcurrentActivityTaskExecutions).toBe(150);
    const own = { taskQueue: 'team', maxConcurrentActivityTaskExecutions: 10 };
    expect(configured(own, options).maxConcurrentActivityTaskExecutions).toBe(60);
    expect(configured(own).maxConcurrentActivityTaskExecutions).toBe(10);
  });

  it.each([
    [
      'hooks.example',
      'whsec_' + 'a'.repeat(32),
      'notify.url must be the http:// or https:// URL of a receiver',
    ],
    ['https://hooks.example', 'not-a-secret', 'must hold one secret, or two with a comma between them'],
  ])('does not poll where it could not tell %s by %s', async (url, secret, words) => {
    const plugin = new FollowUpPlugin({ agentApi, notify: { url, secrets: keyFromText(secret) } });
    plugin.configureWorker({ taskQueue: 'team' });
    const polls = jest.fn(() => Promise.resolve());
    const worker = { options: { taskQueue: 'team', namespace: 'default' } } as unknown as Worker;
    await expect(plugin.runWorker(worker, polls)).rejects.toThrow(words);
    expect(polls).not.toHaveBeenCalled();
  });
});

it.each(['', 'agents.example', 'ftp://agents.example', 'https://', 'https://agents.example/?a=1'])(
  'an agent service can not be at %j',
  (baseUrl) => {
    const create = () =>
      createAgentApi({ baseUrl, apiKey: keyFromText('key_of-the-service'), timeoutMs: 1_000 });
    expect(create).toThrow('baseUrl must be an http:// or https:// URL without query and fragment');
  },
);

describe('workers of one process with a task queue each', () => {
  const taskQueues = { followUp: 'follow-ups', read: 'reads', send: 'sends' };
  const plugin = new FollowUpPlugin({ agentApi, taskQueues, inProcessPolls: 50 });
  const on = (taskQueue: string) => plugin.configureWorker({ taskQueue });

  it('get what their queue is for', () => {
    expect(activityNames(on('sends'))).toEqual(['sendMessage']);
    expect(activityNames(on('reads'))).toContain('pollJob');
    expect(activityNames(on('follow-ups'))).toContain('workerSettings');
    expect(on('follow-ups').workflowsPath).toBeDefined();
    expect(on('sends').workflowsPath).toBeUndefined();
    expect(on('sends').maxConcurrentActivityTaskExecutions).toBeUndefined();
    expect(on('reads').maxConcurrentActivityTaskExecutions).toBe(150);
  });

  it('are refused on any other queue, by the names of the right ones', () => {
    expect(() => on('team')).toThrow(
      new TypeError("the task queue team is not one of the follow-up plugin's: follow-ups, reads, sends"),
    );
  });
});
