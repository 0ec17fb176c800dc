import type { ConnectionLike } from '@temporalio/client';
import { FollowUpError } from '../contract/follow-up-error';
import { quote } from '../contract/text';
import { findGrpcError } from './grpc-status';

/** The oldest supported Temporal server. test/temporal/oldest-server.long.test.ts runs on this version. */
export const OLDEST_SERVER_VERSION = '1.29.1';

const CALL_TIMEOUT_MS = 10_000;

/**
 * Reads the version of the Temporal server.
 *
 * @returns null if the Temporal server does not return a version; the caller must not fail then, because a gateway may reject the call
 * @throws FollowUpError `UNSUPPORTED_SERVER` if the Temporal server is too old
 */
export async function checkServerVersion(
  connection: ConnectionLike,
  address?: string,
): Promise<string | null> {
  try {
    const getInfo = () => connection.workflowService.getSystemInfo({});
    const { serverVersion } = await connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, getInfo);
    return requireSupportedVersion(serverVersion, address);
  } catch (error) {
    if (findGrpcError(error) === undefined) throw error;
    return null;
  }
}

/**
 * Checks the version that a Temporal server returned.
 *
 * @returns null if the text is not a version
 * @throws FollowUpError `UNSUPPORTED_SERVER` if the version is too old
 */
export function requireSupportedVersion(version: string, address?: string): string | null {
  const numbers = parseVersion(version);
  if (numbers === undefined) return null;
  const oldest = parseVersion(OLDEST_SERVER_VERSION) ?? [];
  const difference = numbers.map((each, index) => each - (oldest[index] ?? 0)).find((each) => each !== 0);
  if (difference === undefined || difference > 0) return version;
  throw unsupportedServerError(`has the version ${quote(version)}`, address);
}

/** @param problem the fact that shows that the server is too old, as a predicate */
export function unsupportedServerError(problem: string, address?: string): FollowUpError {
  const server = address === undefined ? 'The Temporal server' : `The Temporal server at ${address}`;
  const message = `${server} ${problem}. Upgrade it to version ${OLDEST_SERVER_VERSION} or newer.`;
  return new FollowUpError('UNSUPPORTED_SERVER', message);
}

/** Parses the numbers of a version. A suffix is ignored, so a pre-release counts as its release. */
function parseVersion(text: string): number[] | undefined {
  return /^v?(\d+)\.(\d+)(?:\.(\d+))?/
    .exec(text)
    ?.slice(1)
    .map((part: string | undefined) => Number(part ?? 0));
}
