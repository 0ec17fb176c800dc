import { type WorkflowInterceptorsFactory, workflowInfo } from '@temporalio/workflow';
import { NOTIFICATION_WORKFLOW } from '../../src/contract/names';

/** Returns the workflow ID that the interceptor gives to all notifications of a task queue. */
export function takenNotificationId(taskQueue: string): string {
  return `notification-of-${taskQueue}`;
}

/** Gives every notification the same workflow ID, so that the Temporal server rejects its start if this ID is in use. */
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
