import { expect, it } from '@jest/globals';
import { startFollowUp } from '../../src/client/start';
import { listRunningIdsForJobs } from '../../src/temporal/visibility';
import { eventually } from '../../tools/lib/eventually';
import { sharedEnvironment } from '../harness/shared-environment';

const { open } = sharedEnvironment();

it('lists the running follow-ups of several jobs with one query, also if a job ID has quotes or backslashes', async () => {
  const environment = await open();
  const jobIds = ['plain', "it's", 'a\\b', 'other'].map((name) => `${name}-${Date.now()}`);
  const [first = '', second = '', third = ''] = jobIds;
  // No worker polls this task queue, so the follow-ups keep running.
  const start = (jobId: string) =>
    startFollowUp(environment.client, 'no-worker', {
      projectId: 'p',
      jobId,
      prompt: 'Rebase.',
      requestId: 'r',
    });
  const started = await Promise.all(jobIds.map(start));
  const wanted = started.slice(0, 3).map(({ workflowId }) => workflowId);
  const listed = await eventually('all follow-ups are listed', async () => {
    const running = await listRunningIdsForJobs(environment.client, [first, second, third]);
    return wanted.every((workflowId) => running.has(workflowId)) ? running : null;
  });
  expect(wanted.every((workflowId) => listed.has(workflowId))).toBe(true);
  const others = await listRunningIdsForJobs(environment.client, [first]);
  expect([...others]).toEqual(wanted.slice(0, 1));
  await Promise.all(
    started.map((handle) => environment.client.workflow.getHandle(handle.workflowId).terminate()),
  );
});
