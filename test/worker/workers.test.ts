import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { randomUUID } from 'node:crypto';
import type { AgentApi } from '../../src/agent-api/client';
import { FollowUpPlugin } from '../../src/worker/plugin';
import { FollowUpWorkers } from '../../src/worker/workers';
import { temporal } from '../harness/temporal';

let connection: NativeConnection;
beforeAll(async () => {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  connection = await NativeConnection.connect({ address: temporal().address });
});
afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(async () => {
  await connection.close();
});

const AGENT_API: AgentApi = {
  timeoutMs: 30_000,
  getJob: () => Promise.reject(new Error('not called')),
  sendMessage: () => Promise.reject(new Error('not called')),
  close: () => Promise.resolve(),
};

async function createWorkers() {
  const { namespace, bundlePath } = temporal();
  const name = randomUUID().slice(0, 8);
  const taskQueues = { followUp: `follow-up-${name}`, read: `read-${name}`, send: `send-${name}` };
  const plugin = new FollowUpPlugin({
    agentApi: AGENT_API,
    taskQueues,
    inProcessPolls: 10,
    // As in the worker process, which has ensured them before.
    ensureSearchAttributes: false,
  });
  const created = jest.spyOn(Worker, 'create');
  const workers = await FollowUpWorkers.create(
    connection,
    { temporal: { namespace }, inProcessPolls: 10, taskQueues },
    { workflowBundle: { codePath: bundlePath } },
    plugin,
  );
  const options = created.mock.calls.map(([each]) => plugin.configureWorker(each));
  return { workers, taskQueues, options };
}

describe('the three workers', () => {
  it('offer on each task queue what it is for, and nothing else', async () => {
    const { workers, taskQueues, options } = await createWorkers();
    const offers = options.map(({ taskQueue, activities, workflowBundle, enableNonLocalActivities }) => ({
      taskQueue,
      activities: Object.keys(activities ?? {}),
      workflows: workflowBundle !== undefined,
      activityTasks: enableNonLocalActivities ?? true,
    }));
    expect(offers).toEqual([
      {
        taskQueue: taskQueues.followUp,
        activities: [
          'workerSettings',
          'pendingDetails',
          'followUpEnd',
          'followUpEnds',
          'earlierPage',
          'pageTrouble',
          'ownRunId',
        ],
        workflows: true,
        activityTasks: true,
      },
      {
        taskQueue: taskQueues.read,
        activities: ['getJob', 'pollJob'],
        workflows: false,
        activityTasks: true,
      },
      { taskQueue: taskQueues.send, activities: ['sendMessage'], workflows: false, activityTasks: true },
    ]);
    await workers.run(AbortSignal.abort(), () => undefined);
  });

  it('give a send more time at a shutdown than its two exchanges can take', async () => {
    const { workers, options } = await createWorkers();
    for (const { shutdownGraceTime, shutdownForceTime } of options) {
      expect(shutdownGraceTime).toBeGreaterThan(60_000);
      expect(shutdownForceTime).toBeGreaterThan(Number(shutdownGraceTime));
    }
    await workers.run(AbortSignal.abort(), () => undefined);
  });

  it('run until they are told to stop', async () => {
    const { workers, taskQueues } = await createWorkers();
    expect(workers.notRunning()).toHaveLength(3);
    const stop = new AbortController();
    const ended = workers.run(stop.signal, () => undefined);
    expect(workers.notRunning()).toEqual([]);
    stop.abort();
    expect(workers.notRunning()).toHaveLength(3);
    await ended;
    expect(workers.notRunning()).toContain(`the worker of task queue ${taskQueues.read} is STOPPED`);
  });

  it('all end when one fails, and its error is told with its task queue', async () => {
    const { workers, taskQueues } = await createWorkers();
    const run = Object.getOwnPropertyDescriptor(Worker.prototype, 'run')?.value as () => Promise<void>;
    jest.spyOn(Worker.prototype, 'run').mockImplementation(async function (this: Worker) {
      const ended = run.call(this);
      if (this.options.taskQueue !== taskQueues.send) return ended;
      this.shutdown();
      await ended;
      throw new Error('polling broke');
    });
    const failed: unknown[] = [];
    const stopped = workers.run(new AbortController().signal, (taskQueue, error) => {
      failed.push([taskQueue, String(error)]);
    });
    await expect(stopped).rejects.toThrow('polling broke');
    expect(failed).toEqual([[taskQueues.send, 'Error: polling broke']]);
    expect(workers.notRunning()).toEqual(
      Object.values(taskQueues).map((taskQueue) => `the worker of task queue ${taskQueue} is STOPPED`),
    );
  });
});
