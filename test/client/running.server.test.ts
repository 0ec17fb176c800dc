import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { Client } from '@temporalio/client';
import { defineSearchAttributeKey, type PayloadCodec } from '@temporalio/common';
import { type FollowUpClient, NotFoundError } from '../../src/client';
import { eventually } from '../harness/eventually';
import { resetToTask, workflowTasks } from '../harness/reset';
import { sharedEnvironment } from '../harness/shared-environment';
import { clientOf, idleClientOf, listed, posts, request, untilPolled } from './client-under-test';

const { open } = sharedEnvironment();

describe('a running follow-up', () => {
  it.concurrent('without a worker is described by the server', async () => {
    const environment = await open();
    const idle = idleClientOf(environment);
    const asked = request(environment);
    const { workflowId } = await idle.start(asked);
    expect(await idle.getHandle(workflowId).progress()).toMatchObject({
      from: 'server',
      workers: 0,
      description: { phase: 'baseline', state: 'running', projectId: asked.projectId },
    });
  });

  it.concurrent('that is reset is waited for in its new run', async () => {
    const environment = await open();
    const asked = request(environment, null);
    const followUp = await clientOf(environment).start(asked);
    await untilPolled(clientOf(environment), followUp.workflowId);
    const handle = environment.client.workflow.getHandle(followUp.workflowId);
    const result = followUp.result();
    await resetToTask(handle, (await workflowTasks(handle)).at(-1));
    environment.sandbox.changeJob(asked, { status: 'completed' });
    expect(await result).toMatchObject({ status: 'completed' });
    expect(posts(environment, asked)).toHaveLength(1);
  });
});

describe('an id that is none of ours', () => {
  it.concurrent('of another type is not touched', async () => {
    const environment = await open();
    const workflowId = `other-${randomUUID()}`;
    await environment.client.workflow.start('somethingElse', { workflowId, taskQueue: 'nobody' });
    const followUps = clientOf(environment);
    await expect(followUps.getHandle(workflowId).cancel()).rejects.toThrow('has the type "somethingElse"');
    await expect(followUps.getHandle(workflowId).pollNow()).rejects.toThrow(NotFoundError);
    expect((await environment.client.workflow.getHandle(workflowId).describe()).status.name).toBe('RUNNING');
  });
});

describe('the list', () => {
  it.concurrent.each([['say "hi"'], ["it's\\ ' OR 1 = '1"], ["'quoted"], ["quoted'"], ['"'], ['日本語 🙂']])(
    'finds the follow-ups of the project %j, and no others',
    async (name) => {
      const environment = await open();
      const idle = idleClientOf(environment);
      const projectId = `${name} ${randomUUID().slice(0, 8)} ${name}`;
      const asked = { projectId, jobId: 'j', prompt: 'x', requestId: 'r' };
      const { workflowId } = await idle.start(asked);
      await idle.start({ ...asked, projectId: `${projectId} not` });
      await expect(untilListed(idle, projectId)).resolves.toEqual([workflowId]);
    },
  );
});

describe('the list of a namespace', () => {
  it.concurrent('is not ended by a memo that another service has encrypted', async () => {
    const environment = await open();
    const projectId = `memo-${randomUUID().slice(0, 8)}`;
    const codec: PayloadCodec = {
      encode: (payloads) =>
        Promise.resolve(payloads.map(() => ({ metadata: { encoding: Buffer.from('binary/encrypted') } }))),
      decode: () => Promise.reject(new Error('not here')),
    };
    const { connection, options } = environment.client;
    const dataConverter = { payloadCodecs: [codec] };
    const secretive = new Client({ connection, namespace: options.namespace, dataConverter });
    await secretive.workflow.start('followUp', {
      taskQueue: 'nobody',
      workflowId: projectId,
      memo: { note: 'secret' },
      typedSearchAttributes: [
        { key: defineSearchAttributeKey('AgentProject', 'KEYWORD'), value: projectId },
        { key: defineSearchAttributeKey('FollowUpPhase', 'KEYWORD'), value: 'baseline' },
      ],
    });
    expect(await untilListed(clientOf(environment), projectId)).toEqual([projectId]);
  });
});

/** Visibility is eventually consistent: it is asked until it knows the project. */
async function untilListed(followUps: FollowUpClient, projectId: string): Promise<string[]> {
  const list = () => listed(followUps, { projectId, phase: 'baseline' });
  const found = await eventually('it is listed', list, { until: (all) => all.length > 0 });
  return found.map(({ workflowId }) => workflowId);
}
