import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import {
  FollowUpCancelledError,
  FollowUpEndedError,
  FollowUpFailedError,
  FollowUpTerminatedError,
} from '../../src/client';
import { houseOf } from '../harness/house-of';
import { clientOf, posts, request, untilPolled } from './client-under-test';

const open = houseOf();

describe('an end without a job', () => {
  it.concurrent('is an error with its type and details', async () => {
    const house = await open();
    const asked = { ...request(house), jobId: 'nowhere' };
    const error: unknown = await clientOf(house)
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
      const house = await open();
      const asked = request(house, null);
      const followUps = clientOf(house);
      const { workflowId } = await followUps.start(asked);
      await house.sandbox.journal.waitFor({ projectId: asked.projectId, operation: 'message' });
      await followUps.getHandle(workflowId).cancel();
      const error: unknown = await followUps
        .getHandle(workflowId)
        .result()
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(FollowUpCancelledError);
      expect(error).toMatchObject({
        receipt: { requestId: 'order-1', delivery: { verdict: 'accepted', sends: 1 } },
      });
      await expect(followUps.getHandle(workflowId).cancel()).rejects.toThrow(FollowUpEndedError);
    },
  );

  it.concurrent('by termination says the reason', async () => {
    const house = await open();
    const { workflowId } = await clientOf(house).start(request(house, null));
    await house.client.workflow.getHandle(workflowId).terminate('by hand');
    const error: unknown = await clientOf(house)
      .getHandle(workflowId)
      .result()
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(FollowUpTerminatedError);
    expect(error).toMatchObject({ reason: 'by hand' });
  });

  it.concurrent('does not come of a reset: the wait goes on with the new run', async () => {
    const house = await open();
    const asked = request(house, null);
    const { workflowId, runId } = await clientOf(house).start(asked);
    await untilPolled(clientOf(house), workflowId);
    const handle = house.client.workflow.getHandle(workflowId);
    const result = clientOf(house).getHandle(workflowId).result();
    const { events } = await handle.fetchHistory();
    const completed = (events ?? []).filter((event) => event.workflowTaskCompletedEventAttributes);
    await house.client.workflowService.resetWorkflowExecution({
      namespace: house.client.options.namespace,
      workflowExecution: { workflowId, runId },
      workflowTaskFinishEventId: completed.at(-1)?.eventId ?? null,
      requestId: randomUUID(),
      reason: 'test',
    });
    house.sandbox.changeJob(asked, { status: 'completed' });
    expect(await result).toMatchObject({ status: 'completed' });
    expect(posts(house, asked)).toHaveLength(1);
  });
});
