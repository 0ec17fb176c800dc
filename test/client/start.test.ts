import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { Client } from '@temporalio/client';
import type { Payload } from '@temporalio/common';
import { ConflictError, FollowUpClient, InvalidRequestError } from '../../src/client';
import type { DurationText } from '../../src/core/units';
import { sharedEnvironment } from '../harness/shared-environment';
import { clientOf, posts, request } from './client-under-test';

const open = sharedEnvironment();

describe('a start', () => {
  it.concurrent('gives the derived id, and its result the final job with the receipt', async () => {
    const environment = await open();
    const asked = request(environment);
    const started = await clientOf(environment).start(asked);
    expect(started).toMatchObject({
      workflowId: `follow-up:${asked.projectId}:${asked.jobId}:order-1`,
      requestId: 'order-1',
      attached: false,
    });
    const result = await clientOf(environment).getHandle(started.workflowId).result();
    expect(result).toMatchObject({
      id: asked.jobId,
      status: 'completed',
      followUp: { requestId: 'order-1' },
    });
  });

  it.concurrent('of the same name attaches while it runs and after it ended, and sends once', async () => {
    const environment = await open();
    const asked = request(environment);
    const followUps = clientOf(environment);
    const first = await followUps.start(asked);
    const { requestId, runId, differences, promptCompared, workflowId } = first;
    const same = { requestId, runId, differences, promptCompared, workflowId };
    expect(await followUps.start(asked)).toMatchObject({ ...same, attached: 'running' });
    const result = await followUps.getHandle(workflowId).result();
    expect(await followUps.start(asked)).toMatchObject({ ...same, attached: 'ended' });
    expect(await followUps.execute(asked)).toEqual(result);
    expect(posts(environment, asked)).toHaveLength(1);
  });

  it.concurrent('ten times at once is one follow-up: one call started it, nine attached', async () => {
    const environment = await open();
    const asked = request(environment);
    const started = await Promise.all(Array.from({ length: 10 }, () => clientOf(environment).start(asked)));
    expect(started.filter(({ attached }) => attached === false)).toHaveLength(1);
    expect(new Set(started.map(({ runId }) => runId)).size).toBe(1);
    await clientOf(environment)
      .getHandle(started[0]?.workflowId ?? '')
      .result();
    expect(posts(environment, asked)).toHaveLength(1);
  });

  it.concurrent('of the same name with another prompt is refused, running or ended', async () => {
    const environment = await open();
    const asked = request(environment);
    const followUps = clientOf(environment);
    const { workflowId } = await followUps.start(asked);
    const other = { ...asked, prompt: 'Something else.' };
    await expect(followUps.start(other)).rejects.toThrow(ConflictError);
    await followUps.getHandle(workflowId).result();
    await expect(followUps.start(other)).rejects.toThrow(/exists with another prompt.*Nothing was sent/);
    expect(posts(environment, asked)).toHaveLength(1);
  });

  it.concurrent('of the same name with other options attaches and names them', async () => {
    const environment = await open();
    const asked = request(environment);
    const followUps = clientOf(environment);
    await followUps.start(asked);
    const { attached, differences } = await followUps.start({ ...asked, deadline: '1h' });
    expect({ attached, differences }).toEqual({
      attached: 'running',
      differences: ['deadline is 20s there, not 1h'],
    });
  });

  it.concurrent('is compared with a follow-up that another client started', async () => {
    const environment = await open();
    const asked = request(environment);
    await environment.send(asked);
    expect(await clientOf(environment).start(asked)).toMatchObject({
      attached: 'running',
      promptCompared: true,
    });
    await expect(clientOf(environment).start({ ...asked, prompt: 'Other.' })).rejects.toThrow(ConflictError);
  });

  it.concurrent('is refused with every problem before anything is started', async () => {
    const environment = await open();
    const asked = { ...request(environment), projectId: '..', deadline: '10' as DurationText };
    const error: unknown = await clientOf(environment)
      .start(asked)
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(InvalidRequestError);
    expect((error as InvalidRequestError).problems).toHaveLength(2);
  });

  it.concurrent('is found by its attributes and has no prompt in what the Web UI shows', async () => {
    const environment = await open();
    const asked = request(environment);
    const { workflowId } = await clientOf(environment).start(asked);
    const description = await environment.client.workflow.getHandle(workflowId).describe();
    expect(await clientOf(environment).getHandle(workflowId).describe()).toMatchObject({
      state: 'running',
      projectId: asked.projectId,
      jobId: asked.jobId,
    });
    const shown = `${(await description.staticSummary()) ?? ''}${(await description.staticDetails()) ?? ''}`;
    expect(shown).toContain(asked.jobId);
    expect(shown).not.toContain('broken links');
  });
});

describe('a payload codec', () => {
  it.concurrent('of the caller applies to the comparison of prompts as well', async () => {
    const environment = await open();
    const codec = { encode: flipAll, decode: flipAll };
    const client = new Client({
      connection: environment.client.connection,
      namespace: environment.client.options.namespace,
      dataConverter: { payloadCodecs: [codec] },
    });
    const idle = new FollowUpClient(client, { taskQueue: `nobody-${randomUUID()}` });
    const asked = { projectId: 'codec', jobId: randomUUID(), prompt: 'Hidden.', requestId: 'r' };
    await idle.start(asked);
    expect(await idle.start(asked)).toMatchObject({ attached: 'running', promptCompared: true });
    await expect(idle.start({ ...asked, prompt: 'Other.' })).rejects.toThrow(ConflictError);
  });
});

/** A codec that is its own inverse: whoever forgets to decode reads no JSON. */
async function flipAll(payloads: Payload[]): Promise<Payload[]> {
  return Promise.resolve(
    payloads.map(({ metadata, data }) => ({ metadata, data: data?.map((byte) => byte ^ 0xff) })) as Payload[],
  );
}
