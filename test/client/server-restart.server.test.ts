import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { FollowUpClient, FollowUpTerminatedError, TemporalUnreachableError } from '../../src/client';
import { startDevServer, stripTemporalEnv } from '../../dev/dev-server';
import { eventually } from '../harness/eventually';
import { RestartableServer } from '../harness/restartable-server';
import { temporal } from '../harness/temporal';

const cleanUps: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
});

it.concurrent('a wait for the result survives a server that is killed and comes back', () =>
  RestartableServer.with(async (server) => {
    // Without the SDK's own retries, so that every trouble is the client's to survive.
    const connection = await Connection.connect({ address: server.address, interceptors: [] });
    cleanUps.push(() => connection.close());
    const followUps = new FollowUpClient(new Client({ connection }), { taskQueue: 'nobody' });
    const { workflowId } = await followUps.start({ projectId: 'p', jobId: 'j', prompt: 'x', requestId: 'r' });

    const end = followUps.getHandle(workflowId).result();
    // Its rejection is expected below; until then nobody listens.
    end.catch(() => undefined);
    await server.kill();
    await expect(followUps.getHandle(workflowId).describe()).rejects.toThrow(TemporalUnreachableError);
    await server.restart();

    const handle = followUps.client.workflow.getHandle(workflowId);
    // gRPC comes back to a server that was away within its back-off of some seconds.
    await eventually('the server answers', () => handle.terminate('the end'));
    await expect(end).rejects.toThrow(FollowUpTerminatedError);
    await expect(end).rejects.toMatchObject({
      code: 'TERMINATED',
      message: expect.stringContaining('the end'),
    });
  }),
);

it.concurrent('a client that is closed while its server is away ends its waits for good', async () => {
  const server = await startDevServer({ cli: temporal().cli, searchAttributes: true });
  cleanUps.push(() => server.stop());
  const followUps = await FollowUpClient.connect({
    env: { ...stripTemporalEnv(process.env), TEMPORAL_ADDRESS: server.address },
    taskQueue: 'nobody',
  });
  const handle = await followUps.start({ projectId: 'p', jobId: 'j', prompt: 'x', requestId: 'r' });
  const end = handle.result();
  end.catch(() => undefined);
  server.kill();
  await sleep(2_000);
  await followUps.close();
  await expect(end).rejects.toMatchObject({ code: 'CLOSED' });
  // The SDK waits up to six seconds before it tries again; what a timer throws fails this file.
  await sleep(6_500);
});
