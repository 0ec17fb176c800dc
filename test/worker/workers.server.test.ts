import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { FollowUpPlugin } from '../../src/worker/plugin';
import { FollowUpWorkers } from '../../src/worker/workers';
import { newTaskQueues } from '../harness/following';
import { AGENT_API } from '../harness/samples';
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

async function createWorkers() {
  const taskQueues = newTaskQueues();
  const plugin = new FollowUpPlugin({ agentApi: AGENT_API, taskQueues, inProcessPolls: 10 });
  const config = { temporal: { namespace: 'default' }, inProcessPolls: 10, taskQueues };
  const code = { workflowBundle: { codePath: temporal().bundlePath } };
  return { taskQueues, workers: await FollowUpWorkers.create(connection, config, code, plugin) };
}

// The tests of processes run them.
describe('the three workers', () => {
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
    const onFailure = (taskQueue: string, error: unknown) => failed.push([taskQueue, String(error)]);
    const stopped = workers.run(new AbortController().signal, { onFailure });
    await expect(stopped).rejects.toThrow('polling broke');
    expect(failed).toEqual([[taskQueues.send, 'Error: polling broke']]);
    expect(workers.notRunning()).toEqual(
      Object.values(taskQueues).map((taskQueue) => `the worker of task queue ${taskQueue} is STOPPED`),
    );
  });
});
