import type { HttpResponse } from './http-request';

/** Returns the wait of the response's `Retry-After` header in milliseconds, or undefined without a valid header. */
export function readRetryAfter({ headers }: HttpResponse): number | undefined {
  return parseRetryAfter(headers.retryAfter, headers.date);
}

/**
 * Returns whether a response means that a rate limit prevented the request. Some services return 403 with `Retry-After` instead of
 * 429. Reads and POSTs use the same rule. The header's value has no influence, because some values can't be parsed.
 */
export function isRateLimit({ status, headers }: Pick<HttpResponse, 'status' | 'headers'>): boolean {
  return status === 429 || (status === 403 && Boolean(headers.retryAfter?.trim()));
}

/**
 * Returns the wait of a `Retry-After` header in milliseconds: a safe integer, 0 if the wait is negative or in the past, or
 * undefined if the header is absent or invalid.
 *
 * @param respondedAt the response's `Date` header. If `Retry-After` is a date, the wait is counted from this time, because the
 *   worker's clock may be wrong.
 */
export function parseRetryAfter(
  header: string | undefined,
  respondedAt: string | undefined,
): number | undefined {
  const value = header?.trim() ?? '';
  const isNumber = /^[-+]?\d+(?:\.\d+)?$/.test(value);
  const waitMs = isNumber ? Number(value) * 1_000 : parseDate(value) - parseDate(respondedAt?.trim() ?? '');
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(0, Math.ceil(waitMs)), Number.MAX_SAFE_INTEGER);
}

/** Parses an HTTP date (RFC 9110, 5.6.7) or ISO 8601, which some gateways send. Returns NaN for any other text. */
function parseDate(text: string): number {
  const hasTimeZone = /^(?:[A-Z][a-z]{2,8}, .+ GMT|\d{4}-\d{2}-\d{2}T.+(?:Z|[-+]\d{2}:?\d{2}))$/.test(text);
  return hasTimeZone ? Date.parse(text) : NaN;
}
