import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { Client } from '@temporalio/client';
import { defineSearchAttributeKey, type PayloadCodec } from '@temporalio/common';
import { type FollowUpClient, NoAnswerError, NotFoundError } from '../../src/client';
import type { DurationText } from '../../src/core/units';
import { eventually } from '../harness/eventually';
import { sharedEnvironment } from '../harness/shared-environment';
import { clientOf, idleClientOf, request, untilPolled, listed } from './client-under-test';

const open = sharedEnvironment();

describe('a running follow-up', () => {
  it.concurrent('tells its progress, is read now, and gets more time', async () => {
    const environment = await open();
    const asked = request(environment, null);
    const followUps = clientOf(environment);
    const { workflowId } = await followUps.start(asked);
    await untilPolled(followUps, workflowId);
    const polled = await followUps.getHandle(workflowId).pollNow();
    expect(polled.polls).toBeGreaterThan(0);
    expect(await followUps.getHandle(workflowId).progress()).toMatchObject({
      from: 'worker',
      progress: { phase: 'watching' },
    });
    const { deadlineAt } = await followUps.getHandle(workflowId).extendDeadline('2h');
    expect(Date.parse(deadlineAt)).toBeGreaterThan(Date.now() + 7_100_000);
    await expect(followUps.getHandle(workflowId).extendDeadline('2' as DurationText)).rejects.toMatchObject({
      code: 'UPDATE_REFUSED',
    });
    await expect(followUps.getHandle(workflowId).resolveDelivery('delivered')).rejects.toMatchObject({
      code: 'UPDATE_REFUSED',
    });
    await followUps.getHandle(workflowId).cancel();
  });

  it.concurrent('without a worker is described by the server, in bounded time', async () => {
    const environment = await open();
    const idle = idleClientOf(environment);
    const asked = request(environment);
    const { workflowId } = await idle.start(asked);
    const askedAt = Date.now();
    expect(await idle.getHandle(workflowId).progress({ timeoutMs: 500 })).toMatchObject({
      from: 'server',
      workers: 0,
      description: { phase: 'baseline', state: 'running', projectId: asked.projectId },
    });
    expect(Date.now() - askedAt).toBeLessThan(3_000);
  });

  it.concurrent('without a worker lets an update know that there is none', async () => {
    const environment = await open();
    const idle = idleClientOf(environment);
    const { workflowId } = await idle.start(request(environment));
    const error: unknown = await idle
      .getHandle(workflowId)
      .extendDeadline('1h')
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(NoAnswerError);
    expect((error as NoAnswerError).message).toContain('no worker polls the task queue');
  });
});

describe('an id that is none of ours', () => {
  it.concurrent('is not found, whatever is asked of it', async () => {
    const followUps = clientOf(await open());
    const questions = [
      () => followUps.getHandle('nowhere').result(),
      () => followUps.getHandle('nowhere').progress(),
      () => followUps.getHandle('nowhere').describe(),
      () => followUps.getHandle('nowhere').cancel(),
      () => followUps.getHandle('nowhere').pollNow(),
    ];
    for (const ask of questions) await expect(ask()).rejects.toThrow(NotFoundError);
  });

  it.concurrent('of another type is not touched', async () => {
    const environment = await open();
    const workflowId = `other-${randomUUID()}`;
    await environment.client.workflow.start('somethingElse', { workflowId, taskQueue: 'nobody' });
    const followUps = clientOf(environment);
    await expect(followUps.getHandle(workflowId).cancel()).rejects.toThrow('its type is "somethingElse"');
    await expect(followUps.getHandle(workflowId).pollNow()).rejects.toThrow(NotFoundError);
    expect((await environment.client.workflow.getHandle(workflowId).describe()).status.name).toBe('RUNNING');
  });
});

describe('the list', () => {
  it.concurrent.each([
    ["it's"],
    ['say "hi"'],
    ['back\\slash'],
    ['100%_sure'],
    ["' OR 1 = '1"],
    ['日本語 🙂'],
  ])('finds the follow-ups of the project %j, and no others', async (name) => {
    const environment = await open();
    const idle = idleClientOf(environment);
    const projectId = `${name} ${randomUUID().slice(0, 8)} ${name}`;
    const asked = { projectId, jobId: 'j', prompt: 'x', requestId: 'r' };
    const { workflowId } = await idle.start(asked);
    await idle.start({ ...asked, projectId: `${projectId} not` });
    await expect(untilListed(idle, projectId)).resolves.toEqual([workflowId]);
  });
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
    const secretive = new Client({
      connection,
      namespace: options.namespace,
      dataConverter: { payloadCodecs: [codec] },
    });
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
