import { describe, expect, it, jest } from '@jest/globals';
import { Client } from '@temporalio/client';
import { FollowUpClient, FollowUpRejectedError, hasCode } from '../../src/entries/client';
import { SEND_PERMISSION_MS } from '../../src/contract/send-result';
import { keywordAttributeKey } from '../../src/contract/follow-up-start-options';
import { FOLLOW_UP_WORKFLOW } from '../../src/contract/names';
import { readRunInput } from '../../src/temporal/workflow-executions';
import { ENDLESS_TURN } from '../harness/follow-up-under-test';
import { sharedEnvironment } from '../harness/shared-environment';

const { open, newBatch } = sharedEnvironment();

/** A fault: the first read receives 403, as if the API key lacked a permission. */
const FORBIDDEN = { name: 'status', operation: 'get', times: 1, parameters: { code: 403 } } as const;

/** Starts a follow-up that ends before its message is sent. */
async function startRejected() {
  const environment = await open();
  const request = environment.newRequest();
  environment.sandbox.setFault({ ...FORBIDDEN, projectId: request.projectId, jobId: request.jobId });
  const handle = await environment.followUps.start(request);
  await expect(handle.result()).rejects.toThrow(FollowUpRejectedError);
  return { environment, request, handle };
}

const TWO_MINUTES_MS = 120_000;

/** Returns a client whose next start waits for `before`, and then has a new deadline. */
function clientThatWaits({ connection }: Client, before: () => Promise<unknown>) {
  const { workflowService } = connection;
  const startWorkflowExecution = (request: Parameters<typeof workflowService.startWorkflowExecution>[0]) =>
    connection.withDeadline(Date.now() + TWO_MINUTES_MS, async () => {
      await before();
      return workflowService.startWorkflowExecution(request);
    });
  const value: unknown = Object.create(workflowService, {
    startWorkflowExecution: { value: startWorkflowExecution },
  });
  const waiting = Object.create(connection, {
    workflowService: { value, configurable: true },
  }) as Client['connection'];
  return new FollowUpClient(new Client({ connection: waiting }));
}

describe('a retry of a follow-up', () => {
  // Proves P6.
  it.concurrent(
    'sends the message once with the same ID and options after the key was rejected, also if many calls retry',
    async () => {
      const { environment, request, handle } = await startRejected();
      expect(environment.posts(request)).toHaveLength(0);
      const retry = () => handle.retry().catch((error: unknown) => hasCode(error, 'STILL_RUNNING'));
      const retried = await Promise.all(Array.from({ length: 8 }, retry));
      expect(retried).not.toContain(false);
      const [runId = '', ...others] = new Set(
        retried.flatMap((each) => (each instanceof Object ? [each.runId] : [])),
      );
      expect(others).toEqual([]);
      expect(runId).not.toBe(handle.runId);
      const receipt = { requestId: request.requestId, delivery: { verdict: 'accepted', sends: 1 } };
      const latest = environment.followUps.getHandle(handle.workflowId);
      expect(await latest.result()).toMatchObject({ status: 'completed', receipt });
      expect(environment.posts(request)).toHaveLength(1);
      const run = await readRunInput(environment.client, handle.workflowId, runId);
      expect(run?.input).toEqual(request);
      const again = await environment.followUps.start(request);
      expect(again).toMatchObject({ runId, attached: 'ended' });
      await expect(latest.retry()).rejects.toMatchObject({
        ...{ code: 'RETRY_NOT_ALLOWED', receipt: { delivery: { verdict: 'accepted' } } },
        message: expect.stringContaining('was accepted'),
      });
    },
  );

  // Proves P6.
  it.concurrent('starts nothing if it takes longer than a send permission is valid', async () => {
    const { environment, request, handle } = await startRejected();
    const retriedAt = Date.now() - SEND_PERMISSION_MS;
    const clock = jest.spyOn(Date, 'now').mockReturnValue(retriedAt);
    const late = handle.retry();
    clock.mockRestore();
    await expect(late).rejects.toMatchObject({ code: 'START_UNCONFIRMED', workflowId: handle.workflowId });
    expect(environment.posts(request)).toHaveLength(0);
  });

  it.concurrent(
    'reports that the run was already retried if another program runs the follow-up to its end before the start',
    async () => {
      const { environment, request, handle } = await startRejected();
      const { workflowId, runId } = handle;
      const { workflow } = environment.client;
      let otherRunId = '';
      const followUps = clientThatWaits(environment.client, async () => {
        const start = { workflowId, taskQueue: environment.taskQueue, args: [request] };
        const other = await workflow.start(FOLLOW_UP_WORKFLOW, start);
        otherRunId = other.firstExecutionRunId;
        await other.result();
      });
      const retry = followUps.getHandle(workflowId, runId).retry();
      const error: unknown = await retry.catch((reason: unknown) => reason);
      expect(error).toMatchObject({
        ...{ code: 'RETRY_NOT_ALLOWED', state: 'retried' },
        message: expect.stringContaining(`the latest run ${otherRunId} has ended. Nothing was started.`),
      });
      expect(environment.posts(request)).toHaveLength(1);
    },
  );

  // Proves P8.
  it.concurrent(
    'by another client changes nothing for a handle of the earlier run: its result and receipt stay, and no call waits for the new run',
    async () => {
      const environment = await open();
      const request = environment.newRequest(ENDLESS_TURN);
      environment.sandbox.setFault({ ...FORBIDDEN, projectId: request.projectId, jobId: request.jobId });
      const first = await environment.followUps.start(request);
      const waiting = first.result().catch((error: unknown) => error);
      expect(await waiting).toBeInstanceOf(FollowUpRejectedError);
      const second = await environment.followUps.getHandle(first.workflowId).retry();
      const receipt = { delivery: { verdict: 'not-sent', sends: 0 } };
      await expect(first.result()).rejects.toMatchObject({ code: 'REJECTED', receipt });
      const described = { runId: first.runId, state: 'failed', verdict: 'not-sent' };
      expect(await first.describe()).toMatchObject(described);
      const stillRunning = { code: 'STILL_RUNNING', state: 'running' };
      await expect(first.retry()).rejects.toMatchObject(stillRunning);
      for (const update of [() => first.pollNow(), () => first.extendDeadline('2h'), () => first.cancel()])
        await expect(update()).rejects.toMatchObject({ code: 'ALREADY_ENDED', state: 'failed' });
      expect(await second.describe()).toMatchObject({ runId: second.runId, state: 'running' });
      await second.cancel();
      await expect(second.result()).rejects.toMatchObject({ code: 'CANCELLED' });
    },
  );

  it.concurrent('keeps the batch and the priority if the follow-up is an item of a batch', async () => {
    const { client, followUps } = await open();
    const batch = await newBatch(1, {}, {}, FORBIDDEN);
    await batch.start();
    await batch.handle.result();
    const [workflowId = ''] = await batch.itemIds();
    await followUps.getHandle(workflowId).retry();
    const { priority, typedSearchAttributes } = await client.workflow.getHandle(workflowId).describe();
    expect(priority).toMatchObject({ priorityKey: 4 });
    expect(typedSearchAttributes.get(keywordAttributeKey('FollowUpBatch'))).toBe(batch.batchId);
  });
});
