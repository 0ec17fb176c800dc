import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { Client } from '@temporalio/client';
import { type DataConverter, defineSearchAttributeKey } from '@temporalio/common';
import { FollowUpClient, followUpWorkflowId, NotFoundError } from '../../src/entries/client';
import { batchRows } from '../../src/batch/progress';
import { ENCRYPTING } from '../harness/encryption';
import { eventually } from '../../tools/lib/eventually';
import { ENDLESS_TURN } from '../harness/follow-up-under-test';
import { collectWorkflowIds } from '../harness/workflow-ids';
import { resetToTask, workflowTasks } from '../harness/reset';
import { sharedEnvironment } from '../harness/shared-environment';

const { open, follow } = sharedEnvironment();

/** A client whose follow-ups no worker takes up, and an SDK client with a data converter, or without. */
async function idleClient(dataConverter: DataConverter = {}) {
  const { connection, options } = (await open()).client;
  const client = new Client({ connection, namespace: options.namespace, dataConverter });
  return { client, idle: new FollowUpClient(client, { taskQueue: `nobody-${randomUUID()}` }) };
}

describe('a running follow-up', () => {
  it.concurrent('whose start is delayed says when it begins, and no update begins it', async () => {
    const environment = await open();
    const asked = environment.newRequest();
    const handle = await environment.followUps.start(asked, { startDelay: '2h' });
    const { startsAt, startedAt } = await handle.describe();
    expect(Date.parse(startsAt ?? '') - Date.parse(startedAt)).toBe(2 * 3_600_000);
    for (const update of [handle.pollNow(), handle.extendDeadline('1h'), handle.resolveDelivery('delivered')])
      await expect(update).rejects.toMatchObject({
        code: 'UPDATE_REJECTED',
        message: expect.stringContaining(`the follow-up has not started; it starts at ${String(startsAt)}`),
      });
    expect(await handle.describe()).toMatchObject({ startsAt: startsAt, state: 'running' });
    expect(environment.posts(asked)).toEqual([]);
    expect(await environment.followUps.start(asked)).toMatchObject({ attached: 'running' });
  });

  // Proves P7.
  it.concurrent('that ten clients start at once is one', async () => {
    const environment = await open();
    const asked = environment.newRequest();
    const start = () => new FollowUpClient(environment.client, environment).start(asked);
    const all = await Promise.all(Array.from({ length: 10 }, start));
    expect(all.filter(({ attached }) => attached === false)).toHaveLength(1);
    expect(new Set(all.map(({ runId }) => runId)).size).toBe(1);
    await all[0]?.result();
    expect(environment.posts(asked)).toHaveLength(1);
  });

  it.concurrent('that is reset is waited for in its new run', async () => {
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

it.concurrent('an update beyond what the server takes in a run is refused in its words', async () => {
  const batch = await newBatch(1, ENDLESS_TURN);
  await batch.startUntilSent(1);
  await batch.handle.pause();
  await expect(batch.handle.resume()).rejects.toMatchObject({
    code: 'UPDATE_REJECTED',
    message: expect.stringMatching(/limit on the total number of distinct updates/),
  });
});

describe("a client without the workers' data converter", () => {
  it.concurrent('is told by each call what to set', async () => {
    const environment = await open();
    const asked = environment.newRequest();
    const encrypting = await idleClient(ENCRYPTING);
    const { workflowId } = await encrypting.idle.start(asked);
    const { client, idle } = await idleClient();
    await client.workflow.getHandle(workflowId).terminate();
    const handle = idle.getHandle(workflowId);
    const words = /FOLLOW_UP_DATA_CONVERTER, or your Client's dataConverter.*Unknown encoding/;
    const refused = { code: 'INVALID_CONFIGURATION', message: expect.stringMatching(words) };
    for (const call of ['result', 'progress', 'describe', 'retry'] as const)
      await expect(handle[call]()).rejects.toMatchObject(refused);
    await expect(idle.start(asked)).rejects.toMatchObject(refused);
    const plain = await environment.followUps.start(environment.newRequest());
    const unencrypted = { ...refused, message: expect.stringContaining('is not encrypted') };
    await expect(encrypting.idle.getHandle(plain.workflowId).describe()).rejects.toMatchObject(unencrypted);
  });
});

it.concurrent(
  'a start of the name of one without the digest in its memo is compared with its input',
  async () => {
    const environment = await open();
    const { followUps } = environment;
    const startedWith = async (input: object) => {
      const asked = environment.newRequest();
      const { projectId, jobId, requestId } = asked;
      const workflowId = followUpWorkflowId(projectId, jobId, requestId);
      const args = [{ ...asked, ...input }];
      await environment.client.workflow.start('followUp', { workflowId, taskQueue: 'nobody', args });
      return followUps.start(asked);
    };
    expect(await startedWith({})).toMatchObject({ attached: 'running', promptCompared: true });
    expect(await startedWith({ prompt: 7 })).toMatchObject({ attached: 'running', promptCompared: false });
    const refused = /exists with another prompt.*Nothing was sent/;
    await expect(startedWith({ prompt: 'Something else.' })).rejects.toThrow(refused);
  },
);

it.concurrent('a workflow of another type is not touched', async () => {
  const { client, followUps } = await open();
  const workflowId = `other-${randomUUID()}`;
  await client.workflow.start('somethingElse', { workflowId, taskQueue: 'nobody' });
  await expect(followUps.getHandle(workflowId).cancel()).rejects.toThrow('has the type "somethingElse"');
  await expect(followUps.getHandle(workflowId).pollNow()).rejects.toThrow(NotFoundError);
  expect((await client.workflow.getHandle(workflowId).describe()).status.name).toBe('RUNNING');
});

it.concurrent('a batch is no follow-up, and one whose input was refused misses no items', async () => {
  const { client, followUps, taskQueue } = await open();
  const done = await followUps.batches.start([{ projectId: 'p', jobId: randomUUID(), prompt: 'x' }]);
  await done.result();
  const { workflowId } = done;
  await expect(followUps.getHandle(workflowId).progress()).rejects.toThrow('type "followUpBatch"');
  await expect(followUps.getHandle(workflowId).result()).rejects.toThrow('type "followUpBatch"');
  const options = { workflowId: `${workflowId}-refused`, taskQueue, args: ['none'] };
  await client.workflow.start('followUpBatch', options);
  const refused = followUps.batches.getHandle(options.workflowId);
  expect(batchRows(await refused.result()).join()).toContain('under another batch id');
  expect(await refused.retry()).toBeNull();
});

describe('the list', () => {
  // A quote and a backslash are not asked for, nor what comes after them.
  it.concurrent.each(["it's ' OR 1 = '1 \\ \"hi\"", "'日本語 🙂'"])(
    'finds the project %j, and no other',
    async (name) => {
      const { idle } = await idleClient();
      const projectId = `${name} ${randomUUID().slice(0, 8)}`;
      const asked = { projectId, jobId: 'j', prompt: 'x', requestId: 'r' };
      const { workflowId } = await idle.start(asked);
      await idle.start({ ...asked, projectId: `${projectId} not` });
      await expect(untilListed(idle, projectId)).resolves.toEqual([workflowId]);
    },
  );

  it.concurrent('is not ended by a memo that another service has encrypted', async () => {
    const { followUps } = await open();
    const projectId = `memo-${randomUUID().slice(0, 8)}`;
    const { client } = await idleClient(ENCRYPTING);
    await client.workflow.start('followUp', {
      taskQueue: 'nobody',
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

/** Visibility is eventually consistent: it is asked until it knows the project. */
async function untilListed(followUps: FollowUpClient, projectId: string): Promise<string[]> {
  const list = () => collectWorkflowIds(followUps.list({ projectId, phase: 'starting' }));
  return eventually('it is listed', list, { until: (all) => all.length > 0 });
}
