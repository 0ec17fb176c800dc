import { proxyActivities } from '@temporalio/workflow';
import type { BatchActivities } from '../../batch/memo';

/**
 * The activity calls only the Temporal server, so it is on the task queue of the workflows. A batch has no maximum duration. An
 * attempt sets the delay of the next one. If it does not, its worker was lost: the heartbeat timeout is longer than a permission to
 * start items.
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

/** Best effort: a worker that may not terminate workflows must not keep a finished batch open. */
export const { closeChunks } = proxyActivities<BatchActivities>({
  startToCloseTimeout: '1 minute',
  scheduleToCloseTimeout: '5 minutes',
  retry: { initialInterval: 5_000, backoffCoefficient: 1 },
});
