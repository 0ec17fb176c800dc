import { describe, expect, it } from '@jest/globals';
import { ConflictError, FollowUpClient, followUpWorkflowId } from '../../src/client';
import { sharedEnvironment } from '../harness/shared-environment';

const { open } = sharedEnvironment();

describe('a start', () => {
  // Proves P7.
  it.concurrent(
    'of the same name attaches, or with another prompt is refused, while it runs and after it ended; it sends once',
    async () => {
      const environment = await open();
      const { followUps } = environment;
      const asked = environment.newRequest();
      const first = await followUps.start(asked);
      const { requestId, runId, promptCompared, workflowId } = first;
      const same = { requestId, runId, promptCompared, workflowId };
      const other = { ...asked, prompt: 'Something else.' };
      const refused = /exists with another prompt.*Nothing was sent/;
      expect(await followUps.start(asked)).toMatchObject({ ...same, attached: 'running' });
      await expect(followUps.start(other)).rejects.toThrow(refused);
      const result = await followUps.getHandle(workflowId).result();
      expect(await followUps.start(asked)).toMatchObject({ ...same, attached: 'ended' });
      await expect(followUps.start(other)).rejects.toThrow(refused);
      expect(await followUps.execute(asked)).toEqual(result);
      expect(environment.posts(asked)).toHaveLength(1);
    },
  );

  // Proves P7.
  it.concurrent('of the name of one without the digest in its memo is compared with its input', async () => {
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
    await expect(startedWith({ prompt: 'Something else.' })).rejects.toThrow(ConflictError);
  });

  // Proves P7.
  it.concurrent('ten times at once is one follow-up: one call started it, nine attached', async () => {
    const environment = await open();
    const { client, taskQueue } = environment;
    const asked = environment.newRequest();
    const start = () => new FollowUpClient(client, { taskQueue }).start(asked);
    const started = await Promise.all(Array.from({ length: 10 }, start));
    expect(started.filter(({ attached }) => attached === false)).toHaveLength(1);
    expect(new Set(started.map(({ runId }) => runId)).size).toBe(1);
    await started[0]?.result();
    expect(environment.posts(asked)).toHaveLength(1);
  });
});
