import { expect, it, jest } from '@jest/globals';
import type { Worker, WorkerOptions } from '@temporalio/worker';
import { createAgentApi, FollowUpPlugin, keyFromText } from '../../src/entries/plugin';
import { shutdownLimitMs } from '../../src/worker/plugin';
import * as workflows from '../../src/workflows';
import { UNUSED_AGENT_API as agentApi } from '../harness/fixtures';

/** Returns the options of a team's worker as the plugin changes them. */
function configured(worker: WorkerOptions) {
  return new FollowUpPlugin({ agentApi }).configureWorker(worker);
}

// The tests in test/end-to-end run a team’s worker with the plugin.
it('sets shutdown times that are long enough for a send, keeps the options and activities of the team, and rejects activities with duplicate names', () => {
  const { timeoutMs } = agentApi;
  const shutdownForceTime = shutdownLimitMs(timeoutMs);
  const limits = { shutdownGraceTime: 2 * timeoutMs + 5_000, shutdownForceTime };
  expect(configured({ taskQueue: 'team' })).toMatchObject(limits);
  const named = (...names: string[]) => Object.fromEntries(names.map((name) => [name, () => name]));
  const activities = named('announce');
  const teamOptions = {
    workflowsPath: '/team/workflows',
    buildId: 'team-1',
    shutdownGraceTime: '1m',
    activities,
  };
  expect(configured({ taskQueue: 'team', ...teamOptions })).toMatchObject(teamOptions);
  const shared = () =>
    configured({ taskQueue: 'team', activities: named('getJob', 'announce', 'sendMessage') });
  expect(shared).toThrow(
    /^rename these activities, because the follow-up plugin has the same names: getJob, sendMessage$/,
  );
});

it('rejects workflows in a worker whose task queue the plugin uses only for activities, because their follow-ups would wait indefinitely', () => {
  const taskQueues = { followUp: 'team', read: 'team-reads', send: 'team-sends' };
  const plugin = new FollowUpPlugin({ agentApi, taskQueues });
  const configure = (taskQueue: string) =>
    plugin.configureWorker({ taskQueue, workflowsPath: '/team/workflows' });
  expect(configure('team')).toMatchObject({ workflowsPath: '/team/workflows' });
  expect(() => configure('team-reads')).toThrow(
    'the worker of the task queue team-reads has workflows, but the follow-up plugin uses this queue only for activities; run the ' +
      'workflows on the task queue team, or in a worker without the plugin',
  );
});

it.each([
  [
    'hooks.example',
    `whsec_${'a'.repeat(32)}`,
    'notify.url must be the http:// or https:// URL of a receiver',
  ],
  ['https://hooks.example', 'not-a-secret', 'must have one secret, or two with a comma between them'],
])(
  'a worker with the plugin does not poll if the receiver URL %s or the secret %s of notifications is invalid',
  async (url, secret, message) => {
    const plugin = new FollowUpPlugin({ agentApi, notify: { url, secrets: keyFromText(secret) } });
    plugin.configureWorker({ taskQueue: 'team' });
    const polls = jest.fn(() => Promise.resolve());
    const options = { taskQueue: 'team', namespace: 'default', isolateExecutionTimeoutMs: 60_000 };
    const worker = { options } as unknown as Worker;
    await expect(plugin.runWorker(worker, polls)).rejects.toThrow(message);
    expect(polls).not.toHaveBeenCalled();
  },
);

it('a worker with the plugin does not poll a Temporal server that is too old', async () => {
  const plugin = new FollowUpPlugin({ agentApi });
  plugin.configureWorker({ taskQueue: 'team' });
  const polls = jest.fn(() => Promise.resolve());
  const connection = {
    withDeadline: (_: number, call: () => unknown) => call(),
    workflowService: { getSystemInfo: () => Promise.resolve({ serverVersion: '1.28.0' }) },
  };
  const worker = { connection, options: { taskQueue: 'team', namespace: 'default' } } as unknown as Worker;
  await expect(plugin.runWorker(worker, polls)).rejects.toMatchObject({ code: 'UNSUPPORTED_SERVER' });
  expect(polls).not.toHaveBeenCalled();
});

it('createAgentApi rejects a base URL that is not an http or https URL without a query', () => {
  const options = { apiKey: keyFromText('key_of-the-service'), timeoutMs: 1_000 };
  for (const baseUrl of ['', 'ftp://agents.example', 'https://agents.example/?a=1'])
    expect(() => createAgentApi({ baseUrl, ...options })).toThrow(
      'baseUrl must be an http:// or https:// URL',
    );
});

const NOT_IN_RANGE = 'must be a whole number of milliseconds from 1 to 600000, such as 30_000; it is ';

// Node's timers fire at once if their time is NaN, Infinity or longer than 24 days.
it.each([
  [NaN, RangeError, `${NOT_IN_RANGE}NaN`],
  [Infinity, RangeError, `${NOT_IN_RANGE}Infinity`],
  [0, RangeError, `${NOT_IN_RANGE}0`],
  [-1, RangeError, `${NOT_IN_RANGE}-1`],
  [0.5, RangeError, `${NOT_IN_RANGE}0.5`],
  [600_001, RangeError, `${NOT_IN_RANGE}600001`],
  ['30s', TypeError, 'must be a number of milliseconds, such as 30_000; it is "30s"'],
  [undefined, TypeError, 'must be a number of milliseconds, such as 30_000; it is undefined'],
])('createAgentApi and FollowUpPlugin reject the timeout %j', (timeoutMs, error, problem) => {
  const options = { baseUrl: 'https://agents.example', apiKey: keyFromText('key_of-the-service') };
  expect(() => createAgentApi({ ...options, timeoutMs: timeoutMs as number })).toThrow(
    new error(`timeoutMs ${problem}`),
  );
  const custom = { ...agentApi, timeoutMs: timeoutMs as number };
  expect(() => new FollowUpPlugin({ agentApi: custom })).toThrow(new error(`agentApi.timeoutMs ${problem}`));
});

it.each([
  [{ apiKey: 'key_of-the-service' }, /^apiKey must be a key source, such as keyFromText\(key\)/],
  [{ proxy: { url: 'proxy.example:3128' } }, /^proxy\.url must be an http:\/\/ or https:\/\/ URL$/],
])('createAgentApi rejects the option %j', (option, message) => {
  const options = {
    baseUrl: 'https://agents.example',
    apiKey: keyFromText('key_of-the-service'),
    timeoutMs: 1_000,
  };
  expect(() => createAgentApi({ ...options, ...(option as object) })).toThrow(message);
});

it('with three task queues, each worker of the process gets only the activities and workflows of its own task queue', () => {
  const taskQueues = { followUp: 'follow-ups', read: 'reads', send: 'sends' };
  const plugin = new FollowUpPlugin({ agentApi, taskQueues });
  const offered = (taskQueue: string) => {
    const { activities = {}, ...options } = plugin.configureWorker({ taskQueue });
    return { names: Object.keys(activities), hasWorkflows: options.workflowsPath !== undefined };
  };
  const names = expect.arrayContaining(['workerSettings']);
  expect(offered('follow-ups')).toEqual({ names, hasWorkflows: true });
  expect(offered('reads')).toEqual({ names: ['getJob', 'pollJob'], hasWorkflows: false });
  expect(offered('sends')).toEqual({ names: ['sendMessage'], hasWorkflows: false });
  expect(() => offered('team')).toThrow(/^the task queue team is not one of .*: follow-ups, reads, sends$/);
});

it('rejects a worker whose prebuilt bundle does not have the workflows of follow-ups', () => {
  const code = 'exports.followUp = 1';
  const message = /^the workflow bundle of the task queue team does not have the follow-up workflows/;
  expect(() => configured({ taskQueue: 'team', workflowBundle: { code } })).toThrow(message);
  expect(() => configured({ taskQueue: 'team', workflowBundle: { codePath: __filename } })).toThrow(message);
  // A bundle with every export of this module has the name for which the plugin searches.
  const workflowBundle = { code: Object.keys(workflows).join() };
  expect(configured({ taskQueue: 'team', workflowBundle })).toMatchObject({ workflowBundle });
});

it('keeps the webpack options of a team when it adds the workflows of follow-ups to the bundle', () => {
  const plugin = new FollowUpPlugin({ agentApi });
  const aliasesOf = (alias: object) => {
    const webpackConfigHook = () => ({ resolve: { alias } }) as never;
    const { webpackConfigHook: hook } = plugin.configureBundler({
      workflowsPath: '/team',
      webpackConfigHook,
    });
    return hook?.({}).resolve?.alias;
  };
  expect(aliasesOf({ own: '/own' })).toEqual({ own: '/own', 'agent-follow-up-team-workflows$': '/team' });
  const own = { name: 'own', alias: '/own' };
  const added = { name: 'agent-follow-up-team-workflows', alias: '/team', onlyModule: true };
  expect(aliasesOf([own])).toEqual([own, added]);
});
