import { expect, it } from '@jest/globals';
import { Client, type WorkflowExecutionDescription } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { findPendingActivity } from '../../src/temporal/sdk-internals';

// The server lists them in any order; the one before was given up, and its worker has not heard of it.
it('of several activities of a type the latest is asked', async () => {
  const pendingActivities = ['9', '12', '7', '13'].map((activityId) => ({
    activityId,
    activityType: { name: activityId === '13' ? 'getJob' : 'pollJob' },
    heartbeatDetails: { payloads: [defaultPayloadConverter.toPayload(`of ${activityId}`)] },
  }));
  const found = { workflowId: 'w', raw: { pendingActivities } as WorkflowExecutionDescription['raw'] };
  expect((await findPendingActivity(new Client(), found, 'pollJob'))?.details).toBe('of 12');
});
