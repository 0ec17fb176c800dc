import { NamespaceNotFoundError } from '@temporalio/common';
import { FollowUpError, hasCode } from '../contract/follow-up-error';
import { SEARCH_ATTRIBUTE_TYPES, type SearchAttributeName, SEARCH_ATTRIBUTES } from '../contract/names';
import { singleLine } from '../contract/text';
import { findGrpcError, isTransient } from './grpc-status';

/** Thrown when the Temporal server can't be reached, or did not respond in time. */
export class TemporalUnreachableError extends FollowUpError {
  constructor(message: string, options?: ErrorOptions) {
    super('UNREACHABLE', message, options);
  }
}

/** Thrown when the namespace or its search attributes are missing. The message states the commands that add them. */
export class SearchAttributesError extends FollowUpError {
  constructor(message: string, options?: ErrorOptions) {
    super('NAMESPACE_NOT_SET_UP', message, options);
  }
}

/** Returns the SDK's error with the required action; undefined if the error is not from the Temporal server or its connection. */
export function serverError(
  error: unknown,
  { namespace, address }: { readonly namespace: string; readonly address?: string },
): FollowUpError | undefined {
  if (error instanceof FollowUpError) return error;
  // The SDK has its own error for a missing namespace only when a workflow is started.
  if (error instanceof NamespaceNotFoundError) return namespaceNotFoundError(namespace, error);
  const grpc = findGrpcError(error);
  if (grpc === undefined) return undefined;
  const { status, text } = grpc;
  if (status === 'NOT_FOUND' && /^Namespace .* is not found/.test(text))
    return namespaceNotFoundError(namespace, error);
  const server = address === undefined ? 'The Temporal server' : `Temporal at ${address}`;
  const unauthorizedError = (what: string, check: string) =>
    new FollowUpError('UNAUTHORIZED', `${server} ${what} (${text}); check ${check}.`, { cause: error });
  if (status === 'UNAUTHENTICATED')
    return unauthorizedError(
      'does not accept the credentials',
      'TEMPORAL_API_KEY or the TLS client certificate',
    );
  if (status === 'PERMISSION_DENIED')
    return unauthorizedError('denies access', 'TEMPORAL_NAMESPACE and the permissions of the credentials');
  if (isTransient(error)) {
    // The text of a gRPC deadline only describes gRPC's own parts.
    const reason = status === 'DEADLINE_EXCEEDED' ? 'in time' : `(${text})`;
    const message = `${server} does not answer ${reason}; the same call may be repeated.`;
    return new TemporalUnreachableError(message, { cause: error });
  }
  if (status === 'INVALID_ARGUMENT' && /search attribute/i.test(text)) {
    const problem = `lacks search attributes that follow-ups need (${text}). Nothing was started`;
    return notSetUpError(namespace, problem, SEARCH_ATTRIBUTES, error);
  }
  return new FollowUpError('SERVER_ERROR', `${server} refuses the call (${text}).`, { cause: error });
}

export function namespaceNotFoundError(namespace: string, cause: unknown): SearchAttributesError {
  return new SearchAttributesError(
    `There is no namespace ${JSON.stringify(namespace)} on this server (TEMPORAL_NAMESPACE). ` +
      `Make it with: temporal operator namespace create --namespace ${namespace}`,
    { cause },
  );
}

/** @param names the search attributes that may be missing */
export function notSetUpError(
  namespace: string,
  problem: string,
  names: readonly SearchAttributeName[],
  cause?: unknown,
): SearchAttributesError {
  const create = `  temporal operator search-attribute create --namespace ${namespace}`;
  const help = [
    'Register them with the starter\'s command "setup", or run those of these that are missing:',
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

/** Explains why Temporal cannot be used, in the words of gRPC. @param error the error of a connection or of its first call */
export function connectionError(
  error: unknown,
  server: { readonly namespace: string; readonly address: string },
): FollowUpError {
  if (error instanceof FollowUpError) return error;
  const knownError = serverError(error, server);
  if (hasCode(knownError, 'UNAUTHORIZED', 'NAMESPACE_NOT_SET_UP')) return knownError;
  const { status, text: grpcText } = findGrpcError(error) ?? {};
  const text = grpcText ?? (error instanceof Error ? error.message : String(error));
  // gRPC describes a deadline in terms of its own parts.
  const reason =
    status === 'DEADLINE_EXCEEDED'
      ? 'there was no response in time'
      : singleLine(text, 300).replace(/\.?( Resolution note:)? *$/, '');
  const message = `Can't reach Temporal at ${server.address}: ${reason}. ${CHECK_CONNECTION}`;
  return new TemporalUnreachableError(message, { cause: error });
}
