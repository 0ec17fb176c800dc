import { EventEmitter, once } from 'node:events';
import { afterAll, describe, expect, it } from '@jest/globals';
import {
  Client,
  Connection,
  type ConnectionOptions,
  type WorkflowClientInterceptor,
} from '@temporalio/client';
import { FollowUpClient, FollowUpRejectedError, hasCode } from '../../src/client';
import { SEND_PERMISSION_MS } from '../../src/core/cadence';
import { readInput } from '../../src/temporal/existing-run';
import type { JobKey, NewJob } from '../../sandbox';
import { SWIFT } from '../harness/batch-of-test';
import type { Environment } from '../harness/environment';
import { eventually } from '../harness/eventually';
import { ENDLESS } from '../harness/following';
import { listed } from '../harness/listed';
import { sharedEnvironment } from '../harness/shared-environment';

const { open } = sharedEnvironment();

const newRequest = (environment: Environment, job: NewJob = {}) => ({
  ...environment.newRequest(job),
  ...SWIFT,
});

/** The next read of the job is answered as if the key had expired. */
function expire({ sandbox }: Environment, { projectId, jobId }: JobKey) {
  sandbox.setFault({ name: 'unauthorized', projectId, jobId, operation: 'get', times: 1 });
}

/** Nobody can tell whether the next message arrives. */
function lose({ sandbox }: Environment, { projectId, jobId }: JobKey) {
  sandbox.setFault({ name: 'reset', projectId, jobId, operation: 'message', times: 1 });
}

const refused = (words: string) => ({ code: 'RETRY_REFUSED', message: expect.stringContaining(words) });

/** A follow-up that ended before its message was sent. */
async function unsent() {
  const environment = await open();
  const asked = newRequest(environment);
  expire(environment, asked);
  const handle = await environment.followUps.start(asked);
  await expect(handle.result()).rejects.toThrow(FollowUpRejectedError);
  return { environment, asked, handle };
}

/** A retry that has read the receipt, and starts nothing before `go` is called; it is then so much later. */
async function heldRetry({ address }: Environment, workflowId: string, lateMs = 0) {
  const begun = new EventEmitter();
  const mayGo = once(begun, 'go');
  const startWithDetails: WorkflowClientInterceptor['startWithDetails'] = async (input, next) => {
    begun.emit('begun');
    await mayGo;
    return next(input);
  };
  const isBegun = once(begun, 'begun');
  // Until when a start may be made; an earlier end is a later now.
  const later = ((options, nextCall) => {
    const isStart = options.method_definition.path.endsWith('/StartWorkflowExecution');
    // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- its package is no dependency of ours
    return nextCall(isStart ? { ...options, deadline: Number(options.deadline) - lateMs } : options);
  }) as NonNullable<ConnectionOptions['interceptors']>[number];
  const connection = await Connection.connect({ address, interceptors: [later] });
  connections.push(connection);
  const interceptors = { workflow: [{ startWithDetails }] };
  const slow = new FollowUpClient(new Client({ connection, interceptors }));
  const late = slow.getHandle(workflowId).retry();
  await isBegun;
  return { late, go: () => begun.emit('go') };
}

const connections: Connection[] = [];
afterAll(async () => {
  for (const connection of connections) await connection.close();
});

describe('a retry of a follow-up', () => {
  // Proves P6.
  it.concurrent(
    'sends the message once after an expired key, by many calls, with the same id and options',
    async () => {
      const { environment, asked, handle } = await unsent();
      expect(environment.posts(asked)).toHaveLength(0);
      const retry = () => handle.retry().catch((error: unknown) => hasCode(error, 'STILL_RUNNING'));
      const retried = await Promise.all(Array.from({ length: 8 }, retry));
      expect(retried).not.toContain(false);
      const [runId = '', ...others] = new Set(
        retried.flatMap((each) => (each instanceof Object ? [each.runId] : [])),
      );
      expect(others).toEqual([]);
      expect(runId).not.toBe(handle.runId);
      const followUp = { requestId: asked.requestId, delivery: { verdict: 'accepted', sends: 1 } };
      expect(await handle.result()).toMatchObject({ status: 'completed', followUp });
      expect(environment.posts(asked)).toHaveLength(1);
      const run = await readInput(environment.client, handle.workflowId, runId);
      expect(run?.input).toEqual(asked);
      const again = await environment.followUps.start(asked);
      expect(again).toMatchObject({ runId, attached: 'ended' });
      const receipt = { delivery: { verdict: 'accepted' } };
      await expect(handle.retry()).rejects.toMatchObject({ ...refused('was accepted'), receipt });
    },
  );

  // Proves P6.
  it.concurrent('that comes late does not retry the run of another one', async () => {
    const { environment, asked, handle } = await unsent();
    const { late, go } = await heldRetry(environment, handle.workflowId);
    expire(environment, asked);
    const { runId } = await handle.retry();
    await expect(handle.result()).rejects.toThrow(FollowUpRejectedError);
    go();
    expect(await late).toEqual({ runId });
    expect(environment.posts(asked)).toHaveLength(0);
  });

  // Proves P6.
  it.concurrent('that comes so late that two others have ended meanwhile starts nothing', async () => {
    const { environment, asked, handle } = await unsent();
    const { late, go } = await heldRetry(environment, handle.workflowId, SEND_PERMISSION_MS);
    expire(environment, asked);
    await handle.retry();
    await expect(handle.result()).rejects.toThrow(FollowUpRejectedError);
    lose(environment, asked);
    await handle.retry();
    await expect(handle.result()).rejects.toMatchObject({ code: 'DELIVERY_UNKNOWN' });
    go();
    await expect(late).rejects.toMatchObject({ code: 'NOT_CONFIRMED', workflowId: handle.workflowId });
    expect(environment.posts(asked)).toHaveLength(1);
  });

  // Proves P6.
  it.concurrent('is refused where no receipt proves it, and says why', async () => {
    const environment = await open();
    const { followUps } = environment;
    const running = await followUps.start(newRequest(environment, ENDLESS));
    await expect(running.retry()).rejects.toMatchObject({ code: 'STILL_RUNNING' });
    await environment.client.workflow.getHandle(running.workflowId).terminate('by hand');
    await expect(running.retry()).rejects.toMatchObject({ ...refused('left no receipt'), receipt: null });
    const asked = newRequest(environment);
    lose(environment, asked);
    const unknown = await followUps.start(asked);
    await expect(unknown.result()).rejects.toMatchObject({ code: 'DELIVERY_UNKNOWN' });
    await expect(unknown.retry()).rejects.toMatchObject(
      refused('Nobody can tell whether the message arrived'),
    );
    await expect(followUps.getHandle('follow-up:a:b:c').retry()).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it.concurrent('of a cancelled one goes by the receipt that it left', async () => {
    const environment = await open();
    const asked = newRequest(environment, { status: 'active', ...ENDLESS });
    const handle = await environment.followUps.start({ ...asked, whenActive: 'wait' });
    await eventually('it waits', async () => {
      const report = await handle.progress();
      return report.from === 'worker' && report.progress.phase === 'waiting';
    });
    await handle.cancel();
    await expect(handle.result()).rejects.toMatchObject({
      ...{ name: 'FollowUpCancelledError', receipt: { delivery: { verdict: 'not-sent' } } },
    });
    environment.sandbox.changeJob(asked, { status: 'completed' });
    await handle.retry();
    await environment.sandbox.journal.waitFor({ projectId: asked.projectId, operation: 'message' });
    await handle.cancel();
    await expect(handle.result()).rejects.toMatchObject({ receipt: { delivery: { verdict: 'accepted' } } });
  });

  it.concurrent('of an item of a batch stays an item of that batch', async () => {
    const environment = await open();
    const { followUps } = environment;
    const { requestId, ...item } = newRequest(environment);
    const batchId = `batch-${requestId}`;
    expire(environment, item);
    await (await followUps.batches.start([item], { batchId })).result();
    const [workflowId = ''] = await listed(followUps.list({ batchId }));
    await followUps.getHandle(workflowId).retry();
    const info = await environment.client.workflow.getHandle(workflowId).describe();
    expect(info.priority).toMatchObject({ priorityKey: 4, fairnessKey: item.projectId });
    const attributes = info.typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]);
    expect(attributes).toContainEqual(['FollowUpBatch', batchId]);
  });
});
