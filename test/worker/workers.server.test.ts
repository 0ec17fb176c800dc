import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { Client } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { workersPolling } from '../../src/temporal/sdk-internals';
import { FollowUpPlugin, SearchAttributesError } from '../../src/entries/plugin';
import { FollowUpWorkers } from '../../src/worker/workers';
import { newTaskQueues } from '../harness/following';
import { AGENT_API as agentApi } from '../harness/samples';
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

// The tests of processes run them.
it('the three workers all end when one fails, and its error is told with its task queue', async () => {
  const taskQueues = newTaskQueues();
  const plugin = new FollowUpPlugin({ agentApi, taskQueues });
  const config = { temporal: { namespace: 'default' }, taskQueues };
  const code = { workflowBundle: { codePath: temporal().bundlePath } };
  const workers = await FollowUpWorkers.create(connection, config, code, plugin);
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
  const failed = `the worker of task queue ${taskQueues.send} failed; the others are drained`;
  expect(logged).toEqual([`${failed}: Error: polling broke`]);
  expect(workers.notRunning()).toEqual(
    Object.values(taskQueues).map((taskQueue) => `the worker of task queue ${taskQueue} is STOPPED`),
  );
});

it('a worker with the plugin does not poll a namespace that can’t have its search attributes', async () => {
  const plugin = new FollowUpPlugin({ agentApi });
  plugin.configureWorker({ taskQueue: 'of-the-team' });
  const polls = jest.fn(() => Promise.resolve());
  const options = { taskQueue: 'of-the-team', namespace: 'nowhere' };
  // A worker that was never run holds its connection for good, so this one is none.
  const run = plugin.runWorker({ options, connection } as unknown as Worker, polls);
  await expect(run).rejects.toThrow(SearchAttributesError);
  expect(polls).not.toHaveBeenCalled();
});

it('a worker whose workflows are not ours does not poll, and says what to export', async () => {
  const workflowsPath = require.resolve('../simulation/probe/workflow');
  const plugins = [new FollowUpPlugin({ agentApi })];
  const taskQueue = 'without-ours';
  const worker = await Worker.create({ taskQueue, connection: await connect(), workflowsPath, plugins });
  const message = /task queue without-ours does not poll, .* lack followUp; export ours .*export \* from/;
  const refused = { code: 'NOT_SET_UP', message: expect.stringMatching(message) };
  await expect(worker.run()).rejects.toMatchObject(refused);
  expect(worker.getState()).toBe('INITIALIZED');
  expect(await workersPolling(new Client({ connection }), taskQueue)).toEqual([]);
});
