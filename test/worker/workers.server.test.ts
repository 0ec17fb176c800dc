import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { Client } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { FollowUpPlugin, SearchAttributesError } from '../../src/entries/plugin';
import { FollowUpWorkers } from '../../src/worker/workers';
import { newTaskQueues } from '../harness/follow-up-under-test';
import { UNUSED_AGENT_API as agentApi } from '../harness/fixtures';
import { temporal } from '../harness/temporal';

const connect = () => NativeConnection.connect({ address: temporal().address });

let connection: NativeConnection;
const logged: string[] = [];
beforeAll(async () => {
  const logger = new DefaultLogger('ERROR', ({ message, meta }) => {
    logged.push(`${message}: ${String(meta?.error)}`);
  });
  Runtime.install({ logger });
  connection = await connect();
});
afterAll(() => connection.close());

// The tests with worker processes cover workers that do not fail.
it('if one of the three workers fails, the others are drained, and the error is logged with the task queue of the failed worker', async () => {
  const taskQueues = newTaskQueues();
  const plugin = new FollowUpPlugin({ agentApi, taskQueues });
  const config = { temporal: { namespace: 'default' }, taskQueues };
  const workers = await FollowUpWorkers.create(connection, config, temporal().bundlePath, plugin);
  const run = Object.getOwnPropertyDescriptor(Worker.prototype, 'run')?.value as () => Promise<void>;
  const running = jest.spyOn(Worker.prototype, 'run').mockImplementation(async function (this: Worker) {
    const ended = run.call(this);
    if (this.options.taskQueue !== taskQueues.send) return ended;
    this.shutdown();
    await ended;
    throw new Error('polling broke');
  });
  await expect(workers.run(new AbortController().signal)).rejects.toThrow('polling broke');
  running.mockRestore();
  const failed = `the worker of task queue ${taskQueues.send} failed; the other workers finish their running tasks and end`;
  expect(logged).toEqual([`${failed}: Error: polling broke`]);
  expect(workers.notRunningReasons()).toEqual(
    Object.values(taskQueues).map((taskQueue) => `the worker of task queue ${taskQueue} is STOPPED`),
  );
});

it('workers that are stopped while a plugin delays their start end as soon as they run', async () => {
  const taskQueues = newTaskQueues();
  const plugin = new FollowUpPlugin({ agentApi, taskQueues });
  const stop = new AbortController();
  let endDelay = () => undefined as unknown;
  const delay = new Promise((resolve) => {
    endDelay = () => {
      resolve(undefined);
    };
  });
  const slow = {
    name: 'slow',
    async runWorker(worker: Worker, next: (worker: Worker) => Promise<void>) {
      await delay;
      await next(worker);
    },
  };
  const config = { temporal: { namespace: 'default' }, taskQueues, plugins: [slow] };
  const workers = await FollowUpWorkers.create(connection, config, temporal().bundlePath, plugin);
  const onReady = jest.fn();
  const running = workers.run(stop.signal, onReady);
  stop.abort();
  endDelay();
  await running;
  expect(onReady).not.toHaveBeenCalled();
});

it('a worker with the plugin does not poll a namespace in which its search attributes are missing and can’t be registered', async () => {
  const plugin = new FollowUpPlugin({ agentApi });
  plugin.configureWorker({ taskQueue: 'team-queue' });
  const polls = jest.fn(() => Promise.resolve());
  const options = { taskQueue: 'team-queue', namespace: 'missing-namespace' };
  // A real worker that never runs would keep its connection open, so the test passes only the fields that the plugin uses.
  const run = plugin.runWorker({ options, connection } as unknown as Worker, polls);
  await expect(run).rejects.toThrow(SearchAttributesError);
  expect(polls).not.toHaveBeenCalled();
});

it('a worker with the plugin runs the workflows of the team and all workflow types of follow-ups', async () => {
  const workflowsPath = require.resolve('../simulation/probe/workflow');
  const plugins = [new FollowUpPlugin({ agentApi })];
  const taskQueue = 'team-workflows';
  const worker = await Worker.create({ taskQueue, connection: await connect(), workflowsPath, plugins });
  const { workflow } = new Client({ connection });
  const execute = (type: string, args: unknown[] = []) =>
    workflow.execute(type, { taskQueue, workflowId: `type-${type}`, args, workflowExecutionTimeout: '30s' });
  await worker.runUntil(async () => {
    expect(await execute('probe', [[]])).toEqual([]);
    expect(await execute('followUpBatchItems')).toBeUndefined();
    await expect(execute('followUp')).rejects.toMatchObject({ cause: { type: 'InvalidRequest' } });
    await expect(execute('followUpBatch')).rejects.toMatchObject({ cause: { type: 'InvalidBatch' } });
    await expect(execute('followUpNotification')).rejects.toMatchObject({
      cause: { activityType: 'postNotification' },
    });
  });
});
