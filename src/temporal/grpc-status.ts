import { type Client, isGrpcServiceError } from '@temporalio/client';

/** The gRPC status codes that decide something here (source: gRPC, "Status codes and their use in gRPC"). */
export const GRPC_STATUS = {
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;
type GrpcStatusName = keyof typeof GRPC_STATUS;

/** The gRPC error in `error` or in its causes: the SDK wraps them in its own `ServiceError`. */
export function grpcError(error: unknown): { status: GrpcStatusName | undefined; words: string } | undefined {
  for (let inner = error; inner instanceof Error; inner = inner.cause) {
    if (!isGrpcServiceError(inner)) continue;
    const { code, details, message } = inner;
    return {
      status: (Object.keys(GRPC_STATUS) as GrpcStatusName[]).find(
        (name) => GRPC_STATUS[name] === (code as number),
      ),
      words: typeof details === 'string' && details !== '' ? details : message,
    };
  }
  return undefined;
}

export function hasGrpcStatus(error: unknown, ...names: GrpcStatusName[]): boolean {
  const status = grpcError(error)?.status;
  return status !== undefined && names.includes(status);
}

/**
 * Whether the same call may succeed a little later: the server restarts, is overloaded, or a proxy between us and it
 * has cut the stream (INTERNAL and CANCELLED come from there). A refused permission does not heal by waiting.
 */
export function isTransient(error: unknown): boolean {
  return hasGrpcStatus(
    error,
    'UNAVAILABLE',
    'DEADLINE_EXCEEDED',
    'RESOURCE_EXHAUSTED',
    'ABORTED',
    'UNKNOWN',
    'INTERNAL',
    'CANCELLED',
  );
}

/**
 * A waiting poller comes back at least once a minute (Temporal's long poll); the server keeps listing one that is gone
 * for five. Hence one that was not heard of for 90 s counts as gone.
 */
const POLLER_IS_GONE_AFTER_MS = 90_000;

/** The enum value TASK_QUEUE_TYPE_WORKFLOW of Temporal's API, whose package is not a dependency of this project. */
const WORKFLOW_TASKS = 1;

/**
 * The workers that poll a workflow task queue, by identity. One that was killed stays for up to 90 seconds.
 *
 * @param timeoutMs limit of the call
 */
export async function workersPolling(
  client: Client,
  taskQueue: string,
  timeoutMs: number,
): Promise<string[]> {
  const { pollers } = await client.withDeadline(Date.now() + timeoutMs, () =>
    client.workflowService.describeTaskQueue({
      namespace: client.options.namespace,
      taskQueue: { name: taskQueue },
      // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- its enum can't be imported, see above
      taskQueueType: WORKFLOW_TASKS,
    }),
  );
  const alive = pollers.filter(({ lastAccessTime }) => {
    const seenAt = Number(lastAccessTime?.seconds ?? 0) * 1_000;
    return seenAt > Date.now() - POLLER_IS_GONE_AFTER_MS;
  });
  return [...new Set(alive.map(({ identity }) => identity ?? 'unnamed'))];
}
