import { expect, it } from '@jest/globals';
import { Client, type WorkflowExecutionDescription } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { findPendingActivity } from '../../src/temporal/sdk-internals';

// The Temporal server lists pending activities in any order. An earlier activity stays pending until its worker confirms the
// cancellation.
it('returns the details of the latest of several pending activities of a type', async () => {
  const pendingActivities = ['9', '12', '7', '13'].map((activityId) => ({
    activityId,
    activityType: { name: activityId === '13' ? 'getJob' : 'pollJob' },
    heartbeatDetails: { payloads: [defaultPayloadConverter.toPayload(`of ${activityId}`)] },
  }));
  const found = { workflowId: 'w', raw: { pendingActivities } as WorkflowExecutionDescription['raw'] };
  expect((await findPendingActivity(new Client(), found, 'pollJob'))?.details).toBe('of 12');
});
