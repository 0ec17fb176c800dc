import { isGrpcServiceError } from '@temporalio/client';
import { FollowUpError } from '../core/errors';

/** The server restarts, is overloaded, or a proxy before it has cut the stream (CANCELLED and INTERNAL come from there). */
const TRANSIENT = {
  CANCELLED: 1,
  UNKNOWN: 2,
  DEADLINE_EXCEEDED: 4,
  RESOURCE_EXHAUSTED: 8,
  ABORTED: 10,
  INTERNAL: 13,
  UNAVAILABLE: 14,
} as const;

/** The gRPC status codes that decide something here (source: gRPC, "Status codes and their use in gRPC"). */
const GRPC_STATUS = {
  ...TRANSIENT,
  INVALID_ARGUMENT: 3,
  NOT_FOUND: 5,
  PERMISSION_DENIED: 7,
  FAILED_PRECONDITION: 9,
  UNIMPLEMENTED: 12,
  UNAUTHENTICATED: 16,
} as const;
type GrpcStatusName = keyof typeof GRPC_STATUS;

/** What the Rust core's text says where its connection gives no status (SDK 1.24, measured). */
const CORE_SAYS = [
  ['UNAUTHENTICATED', 'does not have valid authentication credentials'],
  ['PERMISSION_DENIED', 'does not have permission'],
] as const;

/** The gRPC error in `error` or in its causes: the SDK wraps them in its own `ServiceError`. */
export function grpcError(error: unknown): { status: GrpcStatusName | undefined; words: string } | undefined {
  for (let inner = error; inner instanceof Error; inner = inner.cause) {
    if (!isGrpcServiceError(inner)) {
      const { message } = inner;
      const [status] = CORE_SAYS.find(([, words]) => message.includes(words)) ?? [];
      if (status === undefined) continue;
      return { status, words: message.slice(0, 300) };
    }
    const { code, details, message } = inner;
    // gRPC makes UNIMPLEMENTED of the 404 page of a gateway, which is not the server's word.
    if (GRPC_STATUS.UNIMPLEMENTED === (code as number) && details.startsWith('Received HTTP status code'))
      return {
        status: 'UNAVAILABLE',
        words: `${details}: a gateway or another server; check TEMPORAL_ADDRESS`,
      };
    const names = Object.keys(GRPC_STATUS) as GrpcStatusName[];
    const status = names.find((name) => GRPC_STATUS[name] === (code as number));
    return { status, words: details || message };
  }
  return undefined;
}

export function hasGrpcStatus(error: unknown, ...names: GrpcStatusName[]): boolean {
  const status = grpcError(error)?.status;
  return status !== undefined && names.includes(status);
}

/** Whether the same call may succeed a little later. A refused permission does not heal by waiting. */
export function isTransient(error: unknown): boolean {
  const status = grpcError(error)?.status;
  return status !== undefined && status in TRANSIENT;
}

/** Thrown when the Temporal server can't be reached, or did not answer in time. */
export class TemporalUnreachableError extends FollowUpError {
  constructor(message: string, options?: ErrorOptions) {
    super('UNREACHABLE', message, options);
  }
}

const REFUSALS = [
  ['UNAUTHENTICATED', 'does not accept the credentials', 'TEMPORAL_API_KEY or the TLS client certificate'],
  ['PERMISSION_DENIED', 'denies access', 'TEMPORAL_NAMESPACE and the permissions of the credentials'],
] as const;

/** An error of the transport, in words that tell what to do; undefined for any other. @param address for the words */
export function transportError(error: unknown, address?: string): FollowUpError | undefined {
  const words = grpcError(error)?.words ?? '';
  const server = address === undefined ? 'The Temporal server' : `Temporal at ${address}`;
  const refusal = REFUSALS.find(([status]) => hasGrpcStatus(error, status));
  if (refusal !== undefined) {
    const [, what, check] = refusal;
    const message = `${server} ${what} (${words}); check ${check}.`;
    return new FollowUpError('UNAUTHORIZED', message, { cause: error });
  }
  if (!isTransient(error)) return undefined;
  // What gRPC says of a deadline is about its own parts.
  const why = hasGrpcStatus(error, 'DEADLINE_EXCEEDED') ? 'in time' : `(${words})`;
  const message = `${server} does not answer ${why}; the same call may be repeated.`;
  return new TemporalUnreachableError(message, { cause: error });
}
