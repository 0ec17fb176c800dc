import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { NativeConnection, Worker } from '@temporalio/worker';
import { Client, Connection } from '@temporalio/client';
import { keyFromText } from '../../src/agent-api/api-key';
import { createAgentApi } from '../../src/agent-api/client';
import { SEARCH_ATTRIBUTES } from '../../src/core/names';
import { FollowUpPlugin, SearchAttributesError } from '../../src/worker/plugin';
import { type DevServer, startDevServer } from '../../dev/dev-server';
import { workersPolling } from '../../src/temporal/sdk-internals';
import { eventually } from '../harness/eventually';
import { temporal } from '../harness/temporal';

const KEYWORD = 2;
const INT = 3;

let server: DevServer;
let connection: Connection;
let native: NativeConnection;
const agentApi = createAgentApi({
  baseUrl: 'http://127.0.0.1:9',
  apiKey: keyFromText('a-key-of-this-test'),
  timeoutMs: 1_000,
});
beforeAll(async () => {
  server = await startDevServer({ cli: temporal().cli });
  connection = await Connection.connect({ address: server.address });
  native = await NativeConnection.connect({ address: server.address });
});
afterAll(async () => {
  await native.close();
  await connection.close();
  await agentApi.close();
  await server.stop();
});

async function teamsWorker(taskQueue: string): Promise<Worker> {
  const workflowBundle = { codePath: temporal().bundlePath };
  return Worker.create({
    connection: native,
    taskQueue,
    workflowBundle,
    plugins: [new FollowUpPlugin({ agentApi })],
  });
}

async function registered(): Promise<Readonly<Record<string, number>>> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({
    namespace: 'default',
  });
  return customAttributes;
}

describe('a worker with the plugin', () => {
  it('does not poll where a search attribute has another type, and says so', async () => {
    const searchAttributes = { [SEARCH_ATTRIBUTES[0]]: INT };
    await connection.operatorService.addSearchAttributes({ namespace: 'default', searchAttributes });
    const plugin = new FollowUpPlugin({ agentApi });
    plugin.configureWorker({ taskQueue: 'of-the-team' });
    // A worker that was never run holds its connection for good, so this one is none.
    const options = { taskQueue: 'of-the-team', namespace: 'default' };
    const polls = jest.fn(() => Promise.resolve());
    const run = plugin.runWorker({ options, connection: native } as unknown as Worker, polls);
    await expect(run).rejects.toThrow(SearchAttributesError);
    expect(polls).not.toHaveBeenCalled();
    await connection.operatorService.removeSearchAttributes({
      namespace: 'default',
      searchAttributes: [SEARCH_ATTRIBUTES[0]],
    });
  });

  it('registers those that are missing before it polls', async () => {
    const worker = await teamsWorker('of-the-team');
    const client = new Client({ connection });
    await worker.runUntil(async () => {
      await eventually(
        'the worker polls',
        async () => (await workersPolling(client, 'of-the-team', 2_000)).length > 0,
      );
      const all = Object.fromEntries(SEARCH_ATTRIBUTES.map((name) => [name, KEYWORD]));
      expect(await registered()).toMatchObject(all);
    });
  });
});
