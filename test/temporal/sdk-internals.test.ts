import { afterEach, expect, it, jest } from '@jest/globals';
import { Client, type Connection } from '@temporalio/client';
import { withStartRequestId } from '../../src/temporal/raw-requests';
import { ACTIVATION_TIMEOUT, checkActivationTimeout } from '../../src/temporal/sdk-internals';

afterEach(() => {
  jest.restoreAllMocks();
});

it('all starts of a retry have the same request ID of Temporal, so that the Temporal server creates only one run', async () => {
  const requestIds: unknown[] = [];
  const startWorkflowExecution = ({ requestId }: { readonly requestId: string }) => {
    requestIds.push(requestId);
    return Promise.resolve({ runId: 'run', started: true });
  };
  const configureClient = jest.fn((options: object) => options);
  const plugins = [{ name: 'team', configureClient }];
  const connection = { workflowService: { startWorkflowExecution }, plugins } as unknown as Connection;
  const client = new Client({ connection });
  const retrying = withStartRequestId(client, 'retry of run');
  for (const each of [retrying, retrying, client, client])
    await each.workflow.start('followUp', { workflowId: 'w', taskQueue: 't' });
  expect(requestIds.slice(0, 2)).toEqual(['retry of run', 'retry of run']);
  expect(new Set(requestIds).size).toBe(3);
  // The options of the client already have the changes of the connection's plugins.
  expect(configureClient).toHaveBeenCalledTimes(1);
});

it('a worker reports once that its SDK ignores the timeout of a workflow task’s code, with the effect and the required action', () => {
  const warn = jest.spyOn(process, 'emitWarning').mockReturnValue();
  checkActivationTimeout({ isolateExecutionTimeoutMs: ACTIVATION_TIMEOUT.isolateExecutionTimeout });
  expect(warn).not.toHaveBeenCalled();
  for (const options of [{}, {}]) checkActivationTimeout(options);
  expect(warn.mock.calls).toEqual([
    [
      'The Temporal SDK has no worker option isolateExecutionTimeout. ' +
        "The SDK's default timeout for the code of a workflow task (5 s) is used, so tasks can fail and be repeated on a busy machine. " +
        'Install a version of this package that supports your version of the SDK.',
      { code: 'FOLLOW_UP_SDK_PART_MISSING' },
    ],
  ]);
});
