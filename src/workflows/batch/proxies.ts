import { proxyActivities } from '@temporalio/workflow';
import type { BatchActivities } from '../../batch/memo';

/**
 * The activity sends requests only to the Temporal server, so it is on the task queue of the workflows. The activity has no
 * schedule-to-close timeout, because a batch has no maximum duration. Each attempt sets the delay of the next attempt. If an
 * attempt ends without setting the delay, its worker was lost, or a request to the Temporal server failed. The next attempt then
 * starts after five seconds. The heartbeat timeout is longer than the permission to start items, so a lost worker's permission has
 * expired before the next attempt.
 */
export const { runItems } = proxyActivities<BatchActivities>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '30 seconds',
  retry: {
    initialInterval: 5_000,
    backoffCoefficient: 1,
    maximumInterval: '5 minutes',
    nonRetryableErrorTypes: ['BatchItemsUnavailableError'],
  },
});

/**
 * Terminates the chunks for at most five minutes. A worker without the permission to terminate workflows must not keep a batch
 * open.
 */
export const { closeChunks } = proxyActivities<BatchActivities>({
  startToCloseTimeout: '1 minute',
  scheduleToCloseTimeout: '5 minutes',
  retry: { initialInterval: 5_000, backoffCoefficient: 1 },
});
