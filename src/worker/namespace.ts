import type { NativeConnection } from '@temporalio/worker';

/**
 * Asks the server about a namespace: whether it is there, knows the namespace, and lets this process in.
 *
 * @throws ServiceError with the gRPC status, after `limitMs` milliseconds at the latest
 */
export async function describeNamespace(
  connection: NativeConnection,
  namespace: string,
  limitMs: number,
): Promise<void> {
  await connection.withDeadline(Date.now() + limitMs, () =>
    connection.workflowService.describeNamespace({ namespace }),
  );
}
