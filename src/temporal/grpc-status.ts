import { isGrpcServiceError } from '@temporalio/client';
import { FollowUpError } from '../core/errors';

/** The gRPC status codes that decide something here (source: gRPC, "Status codes and their use in gRPC"). */
const GRPC_STATUS = {
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

/** The server restarts, is overloaded, or a proxy before it has cut the stream (CANCELLED and INTERNAL come from there). */
const TRANSIENT: readonly GrpcStatusName[] = [
  'CANCELLED',
  'UNKNOWN',
  'DEADLINE_EXCEEDED',
  'RESOURCE_EXHAUSTED',
  'ABORTED',
  'INTERNAL',
  'UNAVAILABLE',
];

/** Each with what the Rust core's text says where its connection gives no status (SDK 1.24, measured), and in our words. */
const REFUSALS = [
  {
    status: 'UNAUTHENTICATED',
    ofCore: 'does not have valid authentication credentials',
    what: 'does not accept the credentials',
    check: 'TEMPORAL_API_KEY or the TLS client certificate',
  },
  {
    status: 'PERMISSION_DENIED',
    ofCore: 'does not have permission',
    what: 'denies access',
    check: 'TEMPORAL_NAMESPACE and the permissions of the credentials',
  },
] as const;

/** The gRPC error in `error` or in its causes: the SDK wraps them in its own `ServiceError`. */
export function grpcError(error: unknown): { status: GrpcStatusName | undefined; words: string } | undefined {
  for (let inner = error; inner instanceof Error; inner = inner.cause) {
    const { message } = inner;
    if (isGrpcServiceError(inner)) {
      const code = inner.code as number;
      const words = inner.details || message;
      // gRPC makes UNIMPLEMENTED of the 404 page of a gateway, which is not the server's word.
      if (code === GRPC_STATUS.UNIMPLEMENTED && words.startsWith('Received HTTP status code'))
        return { status: 'UNAVAILABLE', words: `${words}: a gateway; check TEMPORAL_ADDRESS` };
      const [status] = Object.entries(GRPC_STATUS).find(([, each]) => each === code) ?? [];
      return { status: status as GrpcStatusName | undefined, words };
    }
    const refusal = REFUSALS.find(({ ofCore }) => message.includes(ofCore));
    if (refusal !== undefined) return { status: refusal.status, words: message.slice(0, 300) };
  }
  return undefined;
}

export function hasGrpcStatus(error: unknown, ...names: readonly GrpcStatusName[]): boolean {
  const status = grpcError(error)?.status;
  return status !== undefined && names.includes(status);
}

export function isTransient(error: unknown): boolean {
  return hasGrpcStatus(error, ...TRANSIENT);
}

/** Thrown when the Temporal server can't be reached, or did not answer in time. */
export class TemporalUnreachableError extends FollowUpError {
  constructor(message: string, options?: ErrorOptions) {
    super('UNREACHABLE', message, options);
  }
}

/** An error of the transport, in words that tell what to do; undefined for any other. @param address for the words */
export function transportError(error: unknown, address?: string): FollowUpError | undefined {
  const { status, words = '' } = grpcError(error) ?? {};
  const server = address === undefined ? 'The Temporal server' : `Temporal at ${address}`;
  const refusal = REFUSALS.find((each) => each.status === status);
  if (refusal !== undefined) {
    const message = `${server} ${refusal.what} (${words}); check ${refusal.check}.`;
    return new FollowUpError('UNAUTHORIZED', message, { cause: error });
  }
  if (!isTransient(error)) return undefined;
  // What gRPC says of a deadline is about its own parts.
  const why = status === 'DEADLINE_EXCEEDED' ? 'in time' : `(${words})`;
  const message = `${server} does not answer ${why}; the same call may be repeated.`;
  return new TemporalUnreachableError(message, { cause: error });
}
