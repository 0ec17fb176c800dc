import { type WorkflowInterceptorsFactory, workflowInfo } from '@temporalio/workflow';
import { NOTIFICATION_WORKFLOW } from '../../src/contract/names';

/** The ID that every notification gets, for follow-ups and batches of a task queue. */
export function takenNotificationId(taskQueue: string): string {
  return `notification-of-${taskQueue}`;
}

/** Starts every notification with the same workflow ID, so that the Temporal server rejects its start if the ID is taken. */
export const interceptors: WorkflowInterceptorsFactory = () => ({
  outbound: [
    {
      startChildWorkflowExecution: (input, next) => {
        if (input.workflowType !== NOTIFICATION_WORKFLOW) return next(input);
        const options = { ...input.options, workflowId: takenNotificationId(workflowInfo().taskQueue) };
        return next({ ...input, options });
      },
    },
  ],
});
