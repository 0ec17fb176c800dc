import { FollowUpError } from '../core/errors';
import { grpcError, hasGrpcStatus, isTransient } from './grpc-status';

/** Thrown when the Temporal server can't be reached, or did not answer in time. */
export class TemporalUnreachableError extends FollowUpError {
  override readonly name = 'TemporalUnreachableError';

  constructor(message: string, options?: ErrorOptions) {
    super('UNREACHABLE', message, options);
  }
}

/**
 * An error of the SDK that is about the transport, in words that tell what to do; undefined for any other error.
 *
 * @param address names the server in the message, where it is known
 */
export function transportError(error: unknown, address?: string): FollowUpError | undefined {
  const words = grpcError(error)?.words ?? '';
  const server = address === undefined ? 'The Temporal server' : `Temporal at ${address}`;
  if (hasGrpcStatus(error, 'UNAUTHENTICATED')) {
    const reason = `${server} does not accept the credentials (${words}); check TEMPORAL_API_KEY or the TLS client certificate.`;
    return new FollowUpError('UNAUTHORIZED', reason, { cause: error });
  }
  if (hasGrpcStatus(error, 'PERMISSION_DENIED')) {
    const reason = `${server} denies access (${words}); check TEMPORAL_NAMESPACE and the permissions of the credentials.`;
    return new FollowUpError('UNAUTHORIZED', reason, { cause: error });
  }
  if (!isTransient(error)) return undefined;
  return new TemporalUnreachableError(
    `${server} does not answer (${words}); the same call may be repeated.`,
    {
      cause: error,
    },
  );
}
