import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { NativeConnection, Worker } from '@temporalio/worker';
import { Client, Connection } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../../src/core/names';
import { FollowUpPlugin, SearchAttributesError } from '../../src/worker/plugin';
import { type DevServer, startDevServer } from '../../dev/dev-server';
import { workersPolling } from '../../src/temporal/sdk-internals';
import { AGENT_API as agentApi } from '../harness/samples';
import { temporal } from '../harness/temporal';

const INDEXED_VALUE_TYPE_INT = 3;

let server: DevServer;
let connection: Connection;
let native: NativeConnection;
beforeAll(async () => {
  server = await startDevServer({ cli: temporal().cli });
  connection = await Connection.connect({ address: server.address });
  native = await NativeConnection.connect({ address: server.address });
});
afterAll(async () => {
  await native.close();
  await connection.close();
  await server.stop();
});

it('a search attribute of another type keeps a worker with the plugin from polling', async () => {
  const { operatorService } = connection;
  const [first] = SEARCH_ATTRIBUTES;
  const searchAttributes = { [first]: INDEXED_VALUE_TYPE_INT };
  await operatorService.addSearchAttributes({ namespace: 'default', searchAttributes });
  const plugin = new FollowUpPlugin({ agentApi });
  plugin.configureWorker({ taskQueue: 'of-the-team' });
  const polls = jest.fn(() => Promise.resolve());
  const options = { taskQueue: 'of-the-team', namespace: 'default' };
  // A worker that was never run holds its connection for good, so this one is none.
  const run = plugin.runWorker({ options, connection: native } as unknown as Worker, polls);
  await expect(run).rejects.toThrow(SearchAttributesError);
  expect(polls).not.toHaveBeenCalled();
  await operatorService.removeSearchAttributes({ namespace: 'default', searchAttributes: [first] });
});

it('a worker whose workflows are not ours does not poll, and says what to export', async () => {
  const workflowsPath = require.resolve('../simulation/probe/workflow');
  const plugins = [new FollowUpPlugin({ agentApi })];
  const own = await NativeConnection.connect({ address: server.address });
  const worker = await Worker.create({ taskQueue: 'without-ours', connection: own, workflowsPath, plugins });
  const refused = await worker.run().catch((error: unknown) => error);
  expect(refused).toMatchObject({
    code: 'NOT_SET_UP',
    message: expect.stringMatching(
      /task queue without-ours does not poll, .* lack followUp; export ours .*export \* from/,
    ),
  });
  expect(worker.getState()).toBe('INITIALIZED');
  expect(await workersPolling(new Client({ connection }), 'without-ours')).toEqual([]);
});
