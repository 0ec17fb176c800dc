import { expect, it } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { updateRunning, type UpdateTarget } from '../../src/client/update-running';

const FAILED_PRECONDITION = 9;

/** Returns a client whose updates the Temporal server immediately rejects, and whose task queue has one worker. */
function clientWithRejectedUpdates(details: string): Client {
  const rejection = Object.assign(new Error(details), { code: FAILED_PRECONDITION, details, metadata: {} });
  const lastAccessTime = { seconds: Math.floor(Date.now() / 1_000), nanos: 0 };
  return {
    options: { namespace: 'default' },
    withDeadline: (_: number, call: () => Promise<unknown>) => call(),
    workflowService: {
      describeTaskQueue: () => Promise.resolve({ pollers: [{ identity: 'w', lastAccessTime }] }),
    },
    workflow: { getHandle: () => ({ executeUpdate: () => Promise.reject(rejection) }) },
  } as unknown as Client;
}

it('the error of an update that the Temporal server rejects because its worker died states no waiting time', async () => {
  const client = clientWithRejectedUpdates('Workflow Update was aborted');
  const raw = { workflowExecutionInfo: { firstRunId: 'r' } };
  const run = { workflowId: 'w', runId: 'r', taskQueue: 'q', state: 'running', raw } as UpdateTarget;
  await expect(updateRunning(client, () => Promise.resolve(run), { name: 'pollNow' })).rejects.toMatchObject({
    code: 'WAIT_TIMEOUT',
    message:
      'The follow-up w did not respond: the worker on the task queue "q" is busy, waits for the agent service, or has just stopped; try again.',
  });
});
