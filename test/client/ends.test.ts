import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { FollowUpCancelledError, FollowUpFailedError, FollowUpTerminatedError } from '../../src/client';
import { sharedEnvironment } from '../harness/shared-environment';
import { clientOf, posts, request, untilPolled } from './client-under-test';

const open = sharedEnvironment();

describe('an end without a job', () => {
  it.concurrent('is an error with its type and details', async () => {
    const environment = await open();
    const asked = { ...request(environment), jobId: 'nowhere' };
    const error: unknown = await clientOf(environment)
      .execute(asked)
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(FollowUpFailedError);
    expect(error).toMatchObject({
      type: 'JobNotFound',
      details: { httpStatus: 404, job: null, followUp: { delivery: { verdict: 'not-sent' } } },
    });
  });

  it.concurrent(
    'by cancellation carries the receipt, and a second cancellation says that it ended',
    async () => {
      const environment = await open();
      const asked = request(environment, null);
      const followUps = clientOf(environment);
      const { workflowId } = await followUps.start(asked);
      await environment.sandbox.journal.waitFor({ projectId: asked.projectId, operation: 'message' });
      await followUps.getHandle(workflowId).cancel();
      const error: unknown = await followUps
        .getHandle(workflowId)
        .result()
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(FollowUpCancelledError);
      expect(error).toMatchObject({
        receipt: { requestId: 'order-1', delivery: { verdict: 'accepted', sends: 1 } },
      });
      await expect(followUps.getHandle(workflowId).cancel()).rejects.toMatchObject({
        code: 'ALREADY_ENDED',
      });
    },
  );

  it.concurrent('by termination says the reason', async () => {
    const environment = await open();
    const { workflowId } = await clientOf(environment).start(request(environment, null));
    await environment.client.workflow.getHandle(workflowId).terminate('by hand');
    const error: unknown = await clientOf(environment)
      .getHandle(workflowId)
      .result()
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(FollowUpTerminatedError);
    expect(error).toMatchObject({ reason: 'by hand' });
  });

  it.concurrent('does not come of a reset: the wait goes on with the new run', async () => {
    const environment = await open();
    const asked = request(environment, null);
    const { workflowId, runId } = await clientOf(environment).start(asked);
    await untilPolled(clientOf(environment), workflowId);
    const handle = environment.client.workflow.getHandle(workflowId);
    const result = clientOf(environment).getHandle(workflowId).result();
    const { events } = await handle.fetchHistory();
    const completed = (events ?? []).filter((event) => event.workflowTaskCompletedEventAttributes);
    await environment.client.workflowService.resetWorkflowExecution({
      namespace: environment.client.options.namespace,
      workflowExecution: { workflowId, runId },
      workflowTaskFinishEventId: completed.at(-1)?.eventId ?? null,
      requestId: randomUUID(),
      reason: 'test',
    });
    environment.sandbox.changeJob(asked, { status: 'completed' });
    expect(await result).toMatchObject({ status: 'completed' });
    expect(posts(environment, asked)).toHaveLength(1);
  });
});
