import { expect, it } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { FollowUpClient, TemporalUnreachableError } from '../../src/client';
import { eventually } from '../harness/eventually';
import { RestartableServer } from '../harness/restartable-server';

// Proves T1.
it('a wait for the result survives a server that is killed and comes back', () =>
  RestartableServer.with(async (server) => {
    // Without the SDK's own retries, so that every trouble is the client's to survive.
    const connection = await Connection.connect({ address: server.address, interceptors: [] });
    const followUps = new FollowUpClient(new Client({ connection }), { taskQueue: 'nobody' });
    const { workflowId } = await followUps.start({ projectId: 'p', jobId: 'j', prompt: 'x', requestId: 'r' });
    const result = followUps.getHandle(workflowId).result();
    const end = result.catch((error: unknown) => error);
    await server.kill();
    await expect(followUps.getHandle(workflowId).describe()).rejects.toThrow(TemporalUnreachableError);
    await server.restart();
    const handle = followUps.client.workflow.getHandle(workflowId);
    // gRPC comes back to a server that was away within its back-off of some seconds.
    await eventually('the server answers', () => handle.terminate('the end'));
    expect(await end).toMatchObject({
      ...{ name: 'FollowUpTerminatedError', code: 'TERMINATED' },
      message: expect.stringContaining('the end'),
    });
    await connection.close();
  }));
