import { expect, it } from '@jest/globals';
import { ConflictError, FollowUpClient, followUpWorkflowId } from '../../src/client';
import { sharedEnvironment } from '../harness/shared-environment';

const { open } = sharedEnvironment();

// Proves P7.
it('ten starts of the same name at once, and later ones, are one follow-up; one with another prompt is refused', async () => {
  const environment = await open();
  const { client, taskQueue, followUps } = environment;
  const asked = environment.newRequest();
  const start = () => new FollowUpClient(client, { taskQueue }).start(asked);
  const [first, ...others] = await Promise.all([start(), ...Array.from({ length: 9 }, start)]);
  const all = [first, ...others];
  expect(all.filter(({ attached }) => attached === false)).toHaveLength(1);
  const { workflowId, requestId, runId } = first;
  const same = { workflowId, requestId, runId, promptCompared: true };
  for (const each of all) expect(each).toMatchObject(same);
  const refused = /exists with another prompt.*Nothing was sent/;
  const another = () => followUps.start({ ...asked, prompt: 'Something else.' });
  await expect(another()).rejects.toThrow(refused);
  const result = await first.result();
  expect(await followUps.start(asked)).toMatchObject({ ...same, attached: 'ended' });
  await expect(another()).rejects.toThrow(refused);
  expect(await followUps.execute(asked)).toEqual(result);
  expect(environment.posts(asked)).toHaveLength(1);
});

// Proves P7.
it('a start of the name of one without the digest in its memo is compared with its input', async () => {
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
