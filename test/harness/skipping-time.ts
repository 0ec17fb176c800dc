import type { ConnectionLike } from '@temporalio/client';

type Service = ConnectionLike['workflowService'];

/**
 * A connection whose starts ask for a clock of their own: the server (1.32, with `frontend.WorkflowTimeSkippingEnabled`) sets
 * it to the workflow's next timer, retry or time-out whenever no task and no activity of it is under way. The SDK's client
 * (1.24) has no option for it.
 */
export function skippingTime<Connection extends ConnectionLike>(connection: Connection): Connection {
  const service = connection.workflowService;
  const workflowService = Object.create(service, {
    startWorkflowExecution: {
      value: (request: Parameters<Service['startWorkflowExecution']>[0]) =>
        service.startWorkflowExecution({ ...request, timeSkippingConfig: { enabled: true } }),
    },
  }) as Service;
  return Object.create(connection, { workflowService: { value: workflowService } }) as Connection;
}
