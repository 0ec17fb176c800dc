import type { ErrorFact } from './error-facts';

/** What an HTTP status proves about a POST whose answer is not the job itself. */
type StatusProof = 'rejected' | 'not processed' | 'unknown';

/**
 * Statuses with which the service refuses a request for what it is, before it acts on it: malformed (400, 413, 415,
 * 422), not allowed (401, 403, 405), about nothing (404, 410), in the wrong state (409). Repeating changes nothing.
 */
const REJECTED: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 409, 410, 413, 415, 422]);

/** What a status proves about a POST, except for a 2xx with the job itself, which proves that it was accepted. */
export function proofOfStatus(status: number): StatusProof {
  if (REJECTED.has(status)) return 'rejected';
  // The one refusal that is a matter of time: a rate limiter counts a request instead of letting it in.
  if (status === 429) return 'not processed';
  // Success, but no job to show for it: a portal's login page is a 200 too.
  if (status >= 200 && status < 300) return 'unknown';
  // Some services redirect after the work is done ("see the result there"); others never looked at the request.
  if (status >= 300 && status < 400) return 'unknown';
  // 408: the request, or the service's own wait for it, was cut short at any point. 425: it was held as a possible replay.
  if (status === 408 || status === 425) return 'unknown';
  // A server may fail after the work, and a gateway says 502, 503 (with Retry-After too) and 504 after forwarding.
  if (status >= 500) return 'unknown';
  // A status that the service doesn't declare (402, 418, 451, …) comes from a proxy in between, at any
  // moment. To call it unknown costs a look at the job; to call it refused could cost the message a second time.
  return 'unknown';
}

/** What a failure without an answer proves about a POST. */
type FailureProof =
  { readonly verdict: 'not-sent'; readonly repeatable: boolean } | { readonly verdict: 'unknown' };

/** Errors in what we asked for: an address or a header that can't be one, or a proxy that won't have us. */
const CONFIGURATION_ERRORS: ReadonlySet<string> = new Set([
  'UND_ERR_INVALID_ARG',
  'UND_ERR_NOT_SUPPORTED',
  'PROXY_REFUSED',
  'ERR_INVALID_URL',
  'ERR_INVALID_ARG_TYPE',
  'ERR_INVALID_ARG_VALUE',
  'ERR_SOCKET_BAD_PORT',
  'ERR_INVALID_CHAR',
  'ERR_UNESCAPED_CHARACTERS',
]);

/**
 * What an error proves about a POST.
 *
 * The code alone proves nothing: a connection that was used may be lost, and the next one refused with
 * `ECONNREFUSED`. What proves is that no byte was written, which only the exchange knows.
 *
 * @param started whether the first byte of the request may have left
 * @param facts the errors the failure is made of; empty for a time limit or a refusal of our own
 */
export function proofOfFailure(started: boolean, facts: readonly ErrorFact[]): FailureProof {
  // UND_ERR_SOCKET, ECONNRESET, EPIPE, ETIMEDOUT of a read, HPE_*, a TLS alert after the handshake, our own time limit:
  // the request was on its way, and how far it came can't be seen from here (bytes "written" lie in a buffer).
  if (started) return { verdict: 'unknown' };
  // Every repetition would ask for the same impossible thing.
  if (facts.some(({ label }) => CONFIGURATION_ERRORS.has(label))) {
    return { verdict: 'not-sent', repeatable: false };
  }
  // ECONNREFUSED, ENOTFOUND, EAI_AGAIN, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT and UND_ERR_CONNECT_TIMEOUT while
  // connecting, a certificate that isn't trusted, a reset in the TLS handshake, a refusal of our own: time, a new
  // certificate or a restarted service heals each of them.
  return { verdict: 'not-sent', repeatable: true };
}
