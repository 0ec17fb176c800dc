import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, expect, it } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { FollowUpClient, FollowUpTerminatedError } from '../../src/client';
import { startDevServer } from '../../dev/dev-server';
import { eventually } from '../harness/eventually';
import { temporal } from '../harness/temporal';

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

it('a wait for the result survives a server that is killed and comes back', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'restart-'));
  cleanUps.push(() => rm(folder, { recursive: true }));
  const options = {
    cli: temporal().cli,
    databaseFile: path.join(folder, 'temporal.db'),
    searchAttributes: true,
  };
  const first = await startDevServer(options);
  cleanUps.push(() => first.stop());
  // Without the SDK's own retries, so that every trouble is the client's to survive.
  const connection = await Connection.connect({ address: first.address, interceptors: [] });
  cleanUps.push(() => connection.close());
  const followUps = new FollowUpClient(new Client({ connection }), { taskQueue: 'nobody' });
  const { workflowId } = await followUps.start({ projectId: 'p', jobId: 'j', prompt: 'x', requestId: 'r' });

  const troubled = deferred();
  const end = followUps.getHandle(workflowId).result({ onTrouble: troubled.resolve });
  // Its rejection is expected below; until then nobody listens.
  end.catch(() => undefined);
  first.kill();
  await troubled.promise;
  const second = await startDevServer({ ...options, port: first.port });
  cleanUps.splice(1, 0, () => second.stop());

  const handle = followUps.client.workflow.getHandle(workflowId);
  // gRPC comes back to a server that was away within its back-off of some seconds.
  await eventually('the server answers', () => handle.terminate('the end'));
  await expect(end).rejects.toThrow(FollowUpTerminatedError);
});

function deferred() {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((resolver) => {
    resolve = resolver;
  });
  return { promise, resolve };
}
