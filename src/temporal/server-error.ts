import { NamespaceNotFoundError } from '@temporalio/common';
import { FollowUpError, hasCode } from '../contract/follow-up-error';
import { SEARCH_ATTRIBUTE_TYPES, type SearchAttributeName, SEARCH_ATTRIBUTES } from '../contract/names';
import { singleLine } from '../contract/text';
import { findGrpcError, isTransient } from './grpc-status';

/** Thrown when the Temporal server can't be reached or did not respond in time. */
export class TemporalUnreachableError extends FollowUpError {
  declare readonly code: 'UNREACHABLE';

  constructor(message: string, options?: ErrorOptions) {
    super('UNREACHABLE', message, options);
  }
}

/**
 * Thrown when the namespace is missing, or when its search attributes are missing or have a wrong type. The message has the
 * required commands.
 */
export class SearchAttributesError extends FollowUpError {
  declare readonly code: 'NAMESPACE_NOT_SET_UP';

  constructor(message: string, options?: ErrorOptions) {
    super('NAMESPACE_NOT_SET_UP', message, options);
  }
}

interface ServerCall {
  readonly namespace: string;
  readonly address?: string;
  /** The name of the rejected call, if the caller of the function knows it. */
  readonly callName?: string;
}

/** Converts an error of the Temporal server or its connection, and adds the required action. Undefined for any other error. */
export function serverError(
  error: unknown,
  { namespace, address, callName }: ServerCall,
): FollowUpError | undefined {
  if (error instanceof FollowUpError) return error;
  // The SDK's workflow and schedule clients throw this error. The error of a raw request has the gRPC status NOT_FOUND.
  if (error instanceof NamespaceNotFoundError) return namespaceNotFoundError(namespace, error);
  const grpc = findGrpcError(error);
  if (grpc === undefined) return undefined;
  const { status, text } = grpc;
  if (isNamespaceNotFound(error)) return namespaceNotFoundError(namespace, error);
  const server = address === undefined ? 'The Temporal server' : `The Temporal server at ${address}`;
  const unauthorizedError = (event: string, settings: string) =>
    new FollowUpError('UNAUTHORIZED', `${server} ${event} (${text}); check ${settings}.`, { cause: error });
  if (status === 'UNAUTHENTICATED')
    return unauthorizedError('rejects the credentials', 'TEMPORAL_API_KEY or the TLS client certificate');
  if (status === 'PERMISSION_DENIED') {
    const denied = callName === undefined ? 'access' : `access to the call ${callName}`;
    return unauthorizedError(`denies ${denied}`, 'TEMPORAL_NAMESPACE and the permissions of the credentials');
  }
  if (isTransient(error)) {
    // The text of a gRPC deadline only describes internal parts of gRPC.
    const event = status === 'DEADLINE_EXCEEDED' ? 'did not respond in time' : `is not available (${text})`;
    const message = `${server} ${event}; repeat the call.`;
    return new TemporalUnreachableError(message, { cause: error });
  }
  if (status === 'INVALID_ARGUMENT' && /search attribute/i.test(text)) {
    const problem = `lacks search attributes that follow-ups need (${text}). Nothing was started`;
    return notSetUpError(namespace, problem, SEARCH_ATTRIBUTES, error);
  }
  return new FollowUpError('SERVER_ERROR', `${server} rejected the call (${text}).`, { cause: error });
}

/** Returns whether the Temporal server reports that the namespace does not exist. A gateway's NOT_FOUND has another text. */
export function isNamespaceNotFound(error: unknown): boolean {
  const { status, text = '' } = findGrpcError(error) ?? {};
  return status === 'NOT_FOUND' && /^Namespace .* is not found/.test(text);
}

export function namespaceNotFoundError(namespace: string, cause: unknown): SearchAttributesError {
  return new SearchAttributesError(
    `The namespace ${JSON.stringify(namespace)} (TEMPORAL_NAMESPACE) does not exist on this Temporal server. ` +
      `Create it with: temporal operator namespace create --namespace ${namespace}`,
    { cause },
  );
}

const REGISTER_MISSING =
  'Register them with the CLI command "setup", or run the following commands for the missing search attributes:';

/** @param names the search attributes that may be missing */
export function notSetUpError(
  namespace: string,
  problem: string,
  names: readonly SearchAttributeName[],
  cause?: unknown,
): SearchAttributesError {
  const create = `  temporal operator search-attribute create --namespace ${namespace}`;
  const help = [
    REGISTER_MISSING,
    ...names.map((name) => `${create} --type ${SEARCH_ATTRIBUTE_TYPES[name]} --name ${name}`),
    `In Temporal Cloud, use the web console, or: tcld namespace search-attributes add --namespace ${namespace} ` +
      names.map((name) => `--search-attribute "${name}=${SEARCH_ATTRIBUTE_TYPES[name]}"`).join(' '),
  ];
  const message = `The namespace ${namespace} ${problem}. ${help.join('\n')}`;
  return new SearchAttributesError(message, { cause });
}

const CHECK_CONNECTION =
  "Check TEMPORAL_ADDRESS (the gRPC port, 7233 by default, not the Web UI's port), TEMPORAL_TLS (true or false; an API key " +
  'enables TLS), TEMPORAL_API_KEY, TEMPORAL_TLS_SERVER_NAME, TEMPORAL_TLS_SERVER_CA_CERT_*, TEMPORAL_TLS_CLIENT_CERT_* and ' +
  'TEMPORAL_TLS_CLIENT_KEY_*, or the profile in temporal.toml.';

/** Converts the error of a connection, or of its first call, with gRPC's reason and the settings to check. */
export function connectionError(
  error: unknown,
  server: ServerCall & { readonly address: string },
): FollowUpError {
  if (error instanceof FollowUpError) return error;
  const knownError = serverError(error, server);
  if (hasCode(knownError, 'UNAUTHORIZED', 'NAMESPACE_NOT_SET_UP')) return knownError;
  const { status, text: grpcText } = findGrpcError(error) ?? {};
  const text = grpcText ?? (error instanceof Error ? error.message : String(error));
  // The text of a gRPC deadline only describes internal parts of gRPC.
  const reason =
    status === 'DEADLINE_EXCEEDED'
      ? 'it did not respond in time'
      : singleLine(text, 300).replace(/\.?( Resolution note:)? *$/, '');
  const call = server.callName === undefined ? '' : `the call ${server.callName} fails: `;
  const message = `Can't reach the Temporal server at ${server.address}: ${call}${reason}. ${CHECK_CONNECTION}`;
  return new TemporalUnreachableError(message, { cause: error });
}
