import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { Client } from '@temporalio/client';
import { type DataConverter, defineSearchAttributeKey } from '@temporalio/common';
import {
  DeliveryUnknownError,
  FollowUpClient,
  followUpWorkflowId,
  NotFoundError,
} from '../../src/entries/client';
import { batchRows } from '../../src/batch/progress';
import { ENCRYPTING } from '../harness/encryption';
import { eventually } from '../../tools/lib/eventually';
import { ENDLESS_TURN } from '../harness/follow-up-under-test';
import { collectWorkflowIds } from '../harness/workflow-ids';
import { resetToTask, workflowTasks } from '../harness/reset';
import { sharedEnvironment } from '../harness/shared-environment';

const { open, follow } = sharedEnvironment();

/** Returns a client on whose task queue no worker runs, and its SDK client. @param dataConverter by default, none */
async function idleClient(dataConverter: DataConverter = {}) {
  const { connection, options } = (await open()).client;
  const client = new Client({ connection, namespace: options.namespace, dataConverter });
  return { client, idle: new FollowUpClient(client, { taskQueue: `no-worker-${randomUUID()}` }) };
}

describe('a running follow-up', () => {
  it.concurrent('with a start delay reports its start time, and no update starts it earlier', async () => {
    const environment = await open();
    const request = environment.newRequest();
    const handle = await environment.followUps.start(request, { startDelay: '2h' });
    const { startsAt, startedAt } = await handle.describe();
    expect(Date.parse(startsAt ?? '') - Date.parse(startedAt)).toBe(2 * 3_600_000);
    for (const update of [handle.pollNow(), handle.extendDeadline('1h'), handle.resolveDelivery('delivered')])
      await expect(update).rejects.toMatchObject({
        code: 'UPDATE_REJECTED',
        message: expect.stringContaining(`the follow-up has not started; it starts at ${String(startsAt)}`),
      });
    expect(await handle.describe()).toMatchObject({ startsAt, state: 'running' });
    expect(environment.posts(request)).toEqual([]);
    expect(await environment.followUps.start(request)).toMatchObject({ attached: 'running' });
  });

  // Proves P7.
  it.concurrent('is started once if ten clients start it at the same time', async () => {
    const environment = await open();
    const request = environment.newRequest();
    const start = () =>
      new FollowUpClient(environment.client, { taskQueue: environment.taskQueue }).start(request);
    const all = await Promise.all(Array.from({ length: 10 }, start));
    expect(all.filter(({ attached }) => attached === false)).toHaveLength(1);
    expect(new Set(all.map(({ runId }) => runId)).size).toBe(1);
    await all[0]?.result();
    expect(environment.posts(request)).toHaveLength(1);
  });

  it.concurrent('that has ended and is reset returns the result of the run of the reset', async () => {
    const fault = { name: 'reset', operation: 'message', times: 1 } as const;
    const { handle } = await follow(
      ENDLESS_TURN,
      { reconcileTimeout: '1s', onUnknownDelivery: 'fail' },
      fault,
    );
    const latest = (await open()).followUps.getHandle(handle.workflowId);
    const endedAt = async () => {
      const error: unknown = await latest.result().catch((reason: unknown) => reason);
      return error instanceof DeliveryUnknownError ? Date.parse(error.receipt?.endedAt ?? '') : NaN;
    };
    const first = await endedAt();
    await resetToTask(handle, (await workflowTasks(handle)).at(-1));
    expect(await endedAt()).toBeGreaterThan(first);
  });

  it.concurrent('that is reset returns the result of its new run to a waiting client', async () => {
    const following = await follow(ENDLESS_TURN);
    const { handle } = following;
    await following.waitForProgress(({ polls }) => polls > 0);
    const result = (await open()).followUps.getHandle(handle.workflowId).result();
    await resetToTask(handle, (await workflowTasks(handle)).at(-1));
    following.changeJob({ status: 'completed' });
    expect(await result).toMatchObject({ status: 'completed' });
    expect(following.posts()).toHaveLength(1);
  });
});

const { newBatch } = sharedEnvironment({ dynamicConfig: { 'history.maxTotalUpdates': 1 } });

it.concurrent('an update over the maximum per run is rejected with the server’s message', async () => {
  const batch = await newBatch(1, ENDLESS_TURN);
  await batch.startUntilSent(1);
  await batch.handle.pause();
  await expect(batch.handle.resume()).rejects.toMatchObject({
    code: 'UPDATE_REJECTED',
    message: expect.stringMatching(/limit on the total number of distinct updates/),
  });
});

describe("a client without the workers' data converter", () => {
  it.concurrent('gets an error that names the data converter setting from each call', async () => {
    const environment = await open();
    const request = environment.newRequest();
    const encrypting = await idleClient(ENCRYPTING);
    const { workflowId } = await encrypting.idle.start(request);
    const { client, idle } = await idleClient();
    await client.workflow.getHandle(workflowId).terminate();
    const handle = idle.getHandle(workflowId);
    const words = /FOLLOW_UP_PLUGINS, or your Client's dataConverter.*Unknown encoding/;
    const refused = { code: 'INVALID_CONFIGURATION', message: expect.stringMatching(words) };
    for (const call of ['result', 'progress', 'describe', 'retry'] as const)
      await expect(handle[call]()).rejects.toMatchObject(refused);
    await expect(idle.start(request)).rejects.toMatchObject(refused);
    const plain = await environment.followUps.start(environment.newRequest());
    const unencrypted = { ...refused, message: expect.stringContaining('is not encrypted') };
    await expect(encrypting.idle.getHandle(plain.workflowId).describe()).rejects.toMatchObject(unencrypted);
  });
});

it.concurrent(
  'a start compares its prompt with the input of the existing follow-up if the memo has no digest',
  async () => {
    const environment = await open();
    const { followUps } = environment;
    const startedWith = async (input: object) => {
      const request = environment.newRequest();
      const { projectId, jobId, requestId } = request;
      const workflowId = followUpWorkflowId(projectId, jobId, requestId);
      const args = [{ ...request, ...input }];
      await environment.client.workflow.start('followUp', { workflowId, taskQueue: 'no-worker', args });
      return followUps.start(request);
    };
    expect(await startedWith({})).toMatchObject({ attached: 'running', promptCompared: true });
    expect(await startedWith({ prompt: 7 })).toMatchObject({ attached: 'running', promptCompared: false });
    const refused = /exists with another prompt.*Nothing was sent/;
    await expect(startedWith({ prompt: 'Something else.' })).rejects.toThrow(refused);
  },
);

it.concurrent('a follow-up handle does not cancel a workflow of another type', async () => {
  const { client, followUps } = await open();
  const workflowId = `other-${randomUUID()}`;
  await client.workflow.start('somethingElse', { workflowId, taskQueue: 'no-worker' });
  await expect(followUps.getHandle(workflowId).cancel()).rejects.toThrow('has the type "somethingElse"');
  await expect(followUps.getHandle(workflowId).pollNow()).rejects.toThrow(NotFoundError);
  expect((await client.workflow.getHandle(workflowId).describe()).status.name).toBe('RUNNING');
});

it.concurrent('a follow-up handle rejects a batch; a batch with invalid input reports no items', async () => {
  const { client, followUps, taskQueue } = await open();
  const done = await followUps.batches.start([{ projectId: 'p', jobId: randomUUID(), prompt: 'x' }]);
  await done.result();
  const { workflowId } = done;
  await expect(followUps.getHandle(workflowId).progress()).rejects.toThrow(
    'the workflow with this ID is a batch',
  );
  await expect(followUps.getHandle(workflowId).result()).rejects.toThrow(
    'the workflow with this ID is a batch',
  );
  const options = { workflowId: `${workflowId}-refused`, taskQueue, args: ['none'] };
  await client.workflow.start('followUpBatch', options);
  const refused = followUps.batches.getHandle(options.workflowId);
  expect(batchRows(await refused.result()).join()).toContain('with another batch ID');
  expect(await refused.retry()).toBeNull();
});

describe('the list', () => {
  // The visibility query omits quotes, backslashes and the text after them, so the client compares the whole name itself.
  it.concurrent.each(["it's ' OR 1 = '1 \\ \"hi\"", "'日本語 🙂'"])(
    'has the follow-ups of the project %j, and of no other project',
    async (name) => {
      const { idle } = await idleClient();
      const projectId = `${name} ${randomUUID().slice(0, 8)}`;
      const request = { projectId, jobId: 'j', prompt: 'x', requestId: 'r' };
      const { workflowId } = await idle.start(request);
      await idle.start({ ...request, projectId: `${projectId} not` });
      await expect(untilListed(idle, projectId)).resolves.toEqual([workflowId]);
    },
  );

  it.concurrent('also has a follow-up whose memo the client cannot decode', async () => {
    const { followUps } = await open();
    const projectId = `memo-${randomUUID().slice(0, 8)}`;
    const { client } = await idleClient(ENCRYPTING);
    await client.workflow.start('followUp', {
      taskQueue: 'no-worker',
      workflowId: projectId,
      memo: { note: 'secret' },
      typedSearchAttributes: [
        { key: defineSearchAttributeKey('AgentProject', 'KEYWORD'), value: projectId },
        { key: defineSearchAttributeKey('FollowUpPhase', 'KEYWORD'), value: 'starting' },
      ],
    });
    expect(await untilListed(followUps, projectId)).toEqual([projectId]);
  });
});

/** Lists a project's follow-ups until the list is not empty, because the visibility store is eventually consistent. */
async function untilListed(followUps: FollowUpClient, projectId: string): Promise<string[]> {
  const list = () => collectWorkflowIds(followUps.list({ projectId, phase: 'starting' }));
  return eventually('the follow-up is listed', list, { until: (all) => all.length > 0 });
}
