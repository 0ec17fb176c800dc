import { isGrpcServiceError } from '@temporalio/client';

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
