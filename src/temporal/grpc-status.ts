import { isGrpcServiceError } from '@temporalio/client';

/** The gRPC status codes that this project handles (source: gRPC, "Status codes and their use in gRPC"). */
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

/**
 * The status codes of errors that can disappear if the call is repeated. CANCELLED and INTERNAL occur if a proxy closes the
 * stream.
 */
const TRANSIENT: readonly GrpcStatusName[] = [
  'CANCELLED',
  'UNKNOWN',
  'DEADLINE_EXCEEDED',
  'RESOURCE_EXHAUSTED',
  'ABORTED',
  'INTERNAL',
  'UNAVAILABLE',
];

/** Messages of the Rust core (SDK 1.24) that have no gRPC status, and the status that each message implies. */
const CORE_ERROR_TEXTS: readonly (readonly [string, GrpcStatusName])[] = [
  ['does not have valid authentication credentials', 'UNAUTHENTICATED'],
  ['does not have permission', 'PERMISSION_DENIED'],
];

/** Matches the text of an error without a gRPC status, in the SDK's client (grpc-js) and in its Rust core (tonic). */
const HTTP_STATUS_TEXT = /\bHTTP status code \d/;

/** Returns the gRPC error in `error` or its causes, because the SDK wraps gRPC errors in a `ServiceError`. */
export function findGrpcError(
  error: unknown,
): { status: GrpcStatusName | undefined; text: string } | undefined {
  for (let inner = error; inner instanceof Error; inner = inner.cause) {
    const { message } = inner;
    if (isGrpcServiceError(inner)) {
      const code = inner.code as number;
      const text = inner.details || message;
      // gRPC maps a gateway's 404 page to UNIMPLEMENTED, although the response is not from the Temporal server.
      if (code === GRPC_STATUS.UNIMPLEMENTED && HTTP_STATUS_TEXT.test(text))
        return { status: 'UNAVAILABLE', text: `${text} from a gateway; check TEMPORAL_ADDRESS` };
      const [status] = Object.entries(GRPC_STATUS).find(([, each]) => each === code) ?? [];
      return { status: status as GrpcStatusName | undefined, text };
    }
    const [, status] = CORE_ERROR_TEXTS.find(([text]) => message.includes(text)) ?? [];
    if (status !== undefined) return { status, text: message.slice(0, 300) };
  }
  return undefined;
}

export function hasGrpcStatus(error: unknown, ...names: readonly GrpcStatusName[]): boolean {
  const status = findGrpcError(error)?.status;
  return status !== undefined && names.includes(status);
}

/** Returns whether the response to a call states that the server does not have the method. A gateway's 404 page states this too. */
export function isUnimplemented(error: unknown): boolean {
  const { status, text = '' } = findGrpcError(error) ?? {};
  return status === 'UNIMPLEMENTED' || (HTTP_STATUS_TEXT.test(text) && text.includes(' 404'));
}

/** Returns whether an error can disappear if the call is repeated. */
export function isTransient(error: unknown): boolean {
  return hasGrpcStatus(error, ...TRANSIENT);
}
