import { expect, it, jest } from '@jest/globals';
import { Client, type ConnectionLike } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { temporal } from '@temporalio/proto';
import { acquireJobLock } from '../../src/activities/job-lock';
import { MEMO_JOB_LOCK_HOLDER } from '../../src/contract/names';
import type { JobLockHolder } from '../../src/contract/send-result';

const JOB = { projectId: 'p', jobId: 'j' };
const HOLDER: JobLockHolder = { workflowId: 'holder', firstRunId: 'holder-run' };
const NEXT: JobLockHolder = { workflowId: 'next', firstRunId: 'next-run' };

/**
 * Returns a client of a Temporal server on which a follow-up holds the job lock and is running.
 *
 * @param holderFirstRunId the first run ID in the description of the holder; old servers return an empty text
 */
function clientWithHeldLock(holderFirstRunId: string) {
  const terminate = jest.fn<(request: object) => Promise<object>>(() => Promise.resolve({}));
  const fields = { [MEMO_JOB_LOCK_HOLDER]: defaultPayloadConverter.toPayload(HOLDER) };
  const describe = ({ execution: { workflowId = '' } }: { execution: { workflowId?: string } }) =>
    Promise.resolve(
      temporal.api.workflowservice.v1.DescribeWorkflowExecutionResponse.fromObject({
        workflowExecutionInfo: {
          execution: { workflowId, runId: 'latest-run' },
          type: { name: 'any' },
          taskQueue: 'queue',
          status: 'WORKFLOW_EXECUTION_STATUS_RUNNING',
          historyLength: 1,
          startTime: { seconds: 1, nanos: 0 },
          searchAttributes: { indexedFields: {} },
          memo: { fields },
          firstRunId: workflowId === HOLDER.workflowId ? holderFirstRunId : 'lock-run',
        },
      }),
    );
  const alreadyStarted = Object.assign(new Error('started'), { code: 6, details: 'started', metadata: {} });
  const workflowService = {
    startWorkflowExecution: () => Promise.reject(alreadyStarted),
    describeWorkflowExecution: describe,
    terminateWorkflowExecution: terminate,
  };
  const connection = { workflowService, plugins: [] } as unknown as ConnectionLike;
  return { client: new Client({ connection }), terminate };
}

it('the running holder of a job lock keeps the lock', async () => {
  const { client, terminate } = clientWithHeldLock(HOLDER.firstRunId);
  expect(await acquireJobLock(client, JOB, NEXT, 'queue')).toEqual({ kind: 'held', holder: HOLDER });
  expect(terminate).not.toHaveBeenCalled();
});

// Proves T7.
it('if the Temporal server returns no first run ID, no lock is terminated, and the error names the required version', async () => {
  const { client, terminate } = clientWithHeldLock('');
  await expect(acquireJobLock(client, JOB, NEXT, 'queue')).rejects.toMatchObject({
    code: 'UNSUPPORTED_SERVER',
    message: expect.stringMatching(
      /does not return the first run ID of a workflow\. Upgrade it to version 1\./,
    ),
  });
  expect(terminate).not.toHaveBeenCalled();
});

it('the lock of a holder with another run, which has ended, is terminated', async () => {
  const { client, terminate } = clientWithHeldLock('another-run');
  await acquireJobLock(client, JOB, NEXT, 'queue');
  expect(terminate).toHaveBeenCalledWith(expect.objectContaining({ reason: 'its follow-up has ended' }));
});
