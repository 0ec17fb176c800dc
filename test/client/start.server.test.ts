import { describe, expect, it } from '@jest/globals';
import { ConflictError } from '../../src/client';
import { sharedEnvironment } from '../harness/shared-environment';
import { clientOf, posts, request } from './client-under-test';

const { open } = sharedEnvironment();

describe('a start', () => {
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
});
