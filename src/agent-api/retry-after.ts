/** IMF-fixdate, RFC 850 and asctime dates (RFC 9110, 5.6.7), and ISO 8601, which some gateways send. */
const DATE = /^(?:[A-Z][a-z]{2,8},? .*\d{2}:\d{2}:\d{2}.*|\d{4}-\d{2}-\d{2}T.+)$/;

/** The asctime form names no zone and means UTC; `Date.parse` would take the machine's. */
const ASCTIME = /^[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d{2}:\d{2}:\d{2} \d{4}$/;

/**
 * The wait that a `Retry-After` header asks for, in milliseconds: a safe integer, 0 where it is negative or past, as
 * large as the service says otherwise. The cadence bounds it.
 *
 * @param header the header's value: seconds or a date; of several the first
 * @param nowMs the clock against which a date is read
 * @returns undefined where there is no header, or none that can be read
 */
export function parseRetryAfter(
  header: string | readonly string[] | undefined,
  nowMs: number,
): number | undefined {
  const value = (typeof header === 'string' ? header : header?.[0])?.trim();
  if (value === undefined) return undefined;
  if (/^[-+]?\d+(?:\.\d+)?$/.test(value)) return bounded(Number(value) * 1_000);
  if (!DATE.test(value)) return undefined;
  const date = Date.parse(ASCTIME.test(value) ? `${value} GMT` : value);
  return Number.isNaN(date) ? undefined : bounded(date - nowMs);
}

function bounded(ms: number): number {
  return Math.min(Math.max(0, Math.ceil(ms)), Number.MAX_SAFE_INTEGER);
}
