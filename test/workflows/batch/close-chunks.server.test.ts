import { afterEach, expect, it, jest } from '@jest/globals';
import { ServiceError, WorkflowClient, type WorkflowHandle } from '@temporalio/client';
import { chunkWorkflowId } from '../../../src/contract/ids';
import { readBatchMemo } from '../../../src/batch/memo';
import { eventually } from '../../../tools/lib/eventually';
import { ENDLESS_TURN } from '../../harness/follow-up-under-test';
import { Operator } from '../../harness/operator';
import { LARGE_PROMPT, type TestBatch } from '../../harness/test-batch';
import { sharedEnvironment } from '../../harness/shared-environment';

const { newBatch } = sharedEnvironment();

afterEach(() => {
  jest.restoreAllMocks();
});

const PERMISSION_DENIED = 7;

type Termination = WorkflowHandle['terminate'];

/** Replaces the termination of chunks. Returns a function that returns how many terminations were requested. */
function replaceTerminations(
  replacement: (terminate: () => ReturnType<Termination>) => ReturnType<Termination>,
) {
  // eslint-disable-next-line @typescript-eslint/unbound-method -- it is called with the client
  const { getHandle } = WorkflowClient.prototype;
  let requested = 0;
  jest.spyOn(WorkflowClient.prototype, 'getHandle').mockImplementation(function (
    this: WorkflowClient,
    ...args
  ) {
    const handle = getHandle.apply(this, args);
    if (!args[0].startsWith('follow-up-batch-items:')) return handle;
    const terminate = handle.terminate.bind(handle);
    const replaced: Termination = (reason) => {
      requested += 1;
      return replacement(() => terminate(reason));
    };
    return Object.assign(handle, { terminate: replaced });
  } as typeof getHandle);
  return () => requested;
}

/** Makes every termination of a chunk fail with PERMISSION_DENIED. Returns a function that returns the number of these failures. */
function denyTerminations(): () => number {
  const details = 'Request unauthorized.';
  const cause = Object.assign(new Error(details), { code: PERMISSION_DENIED, details, metadata: {} });
  return replaceTerminations(() =>
    Promise.reject(new ServiceError('Failed to terminate workflow', { cause })),
  );
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

// Proves B9, B10.
it.each<[string, (batch: TestBatch) => Promise<unknown>, activityStartedAt: unknown]>([
  ['was cancelled without them', ({ handle }) => handle.cancel(), null],
  [
    'has an activity that an operator completed',
    ({ environment, workflow }) =>
      new Operator(environment.client).complete(workflow.workflowId, 'runItems', '{}'),
    expect.any(Number),
  ],
])(
  'the update cancelRunning cancels the running items while chunks are terminated, if the batch %s',
  async (_, interrupt, activityStartedAt) => {
    const batch = await newBatch(5, ENDLESS_TURN, { prompt: LARGE_PROMPT });
    let permit: () => void = () => undefined;
    const isPermitted = new Promise<void>((resolve) => (permit = resolve));
    const requestedTimes = replaceTerminations((terminate) => isPermitted.then(terminate));
    await batch.startUntilSent(5);
    await interrupt(batch);
    await eventually('the batch terminates its chunks', requestedTimes, { until: (times) => times > 0 });
    await batch.workflow.executeUpdate('cancelRunning');
    permit();
    expect(await batch.handle.result()).toMatchObject({ state: 'cancelled' });
    const outcomes = (await batch.handle.listResults()).map(({ outcome }) => outcome);
    expect(outcomes).toEqual(Array(5).fill('cancelled'));
    // Without the report of an activity, the next run of the batch must check which items were started.
    const memo = readBatchMemo((await batch.workflow.describe()).memo);
    expect(memo).toMatchObject({ activityStartedAt });
  },
);
