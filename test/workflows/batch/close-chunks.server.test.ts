import { afterEach, expect, it, jest } from '@jest/globals';
import { ServiceError, WorkflowClient } from '@temporalio/client';
import { chunkWorkflowId } from '../../../src/contract/ids';
import { readBatchMemo } from '../../../src/batch/memo';
import { eventually } from '../../../tools/lib/eventually';
import { LARGE_PROMPT } from '../../harness/test-batch';
import { sharedEnvironment } from '../../harness/shared-environment';

const { newBatch } = sharedEnvironment();

afterEach(() => {
  jest.restoreAllMocks();
});

const PERMISSION_DENIED = 7;

/** Makes every termination of a chunk fail with PERMISSION_DENIED. Returns a function that returns the number of these failures. */
function denyTerminations(): () => number {
  const details = 'Request unauthorized.';
  const cause = Object.assign(new Error(details), { code: PERMISSION_DENIED, details, metadata: {} });
  // eslint-disable-next-line @typescript-eslint/unbound-method -- it is called with the client
  const { getHandle } = WorkflowClient.prototype;
  let denied = 0;
  const terminate = () => {
    denied += 1;
    return Promise.reject(new ServiceError('Failed to terminate workflow', { cause }));
  };
  jest.spyOn(WorkflowClient.prototype, 'getHandle').mockImplementation(function (
    this: WorkflowClient,
    ...args
  ) {
    const handle = getHandle.apply(this, args);
    return args[0].startsWith('follow-up-batch-items:') ? Object.assign(handle, { terminate }) : handle;
  } as typeof getHandle);
  return () => denied;
}

// Proves B4.
it('a batch ends even if its worker may not terminate the chunks, and tries to terminate each chunk once', async () => {
  const batch = await newBatch(5, {}, { prompt: LARGE_PROMPT });
  const deniedTimes = denyTerminations();
  await batch.start();
  expect(await batch.handle.result()).toMatchObject({ state: 'done', summary: { ended: 5 } });
  const query = `WorkflowType = 'followUpBatchItems' AND FollowUpBatch = '${batch.batchId}'`;
  const chunks = await eventually(
    'each chunk is listed, and its termination was denied once',
    () => batch.environment.client.workflow.count(query),
    { until: ({ count }) => count > 0 && count === deniedTimes() },
  );
  jest.restoreAllMocks();
  const { client } = batch.environment;
  const digest = readBatchMemo((await batch.workflow.describe()).memo)?.digest ?? '';
  for (let chunk = 0; chunk < chunks.count; chunk += 1) {
    const open = client.workflow.getHandle(chunkWorkflowId(batch.batchId, digest, chunk));
    expect((await open.describe()).status.name).toBe('RUNNING');
    await open.terminate();
  }
});
