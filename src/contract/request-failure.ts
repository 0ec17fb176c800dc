import { boolean, type Checked, number, objectOf, optional, text } from './checks';

/** The checks of the fields of a {@link RequestFailure}. */
export const requestFailure = {
  /** The key of the failure in counts and metrics: `http_503`, `timeout`, `ECONNREFUSED`, `not_a_job`, … */
  label: text,
  /** A sentence for operators, which has a limited length and never the API key. */
  message: text,
  /** The HTTP status. The field is absent without a response, and in a response with `gatewayStatus`. */
  httpStatus: optional(number),
  /** The status of a read's 400, 401, 403 or 404 without a JSON object, which probably comes from a gateway. */
  gatewayStatus: optional(number),
  /** The error text of the agent service. */
  serviceMessage: optional(text),
  /** The value of `Retry-After` in milliseconds, as the agent service sent it: no minimum or maximum is applied. */
  retryAfterMs: optional(number),
  /** Whether a rate limit of the agent service prevented the request: the response is 429, or 403 with `Retry-After`. */
  isRateLimit: optional(boolean),
  /**
   * Whether a POST failed because of a configuration error, so that every repetition would fail. No read sets this field, because
   * a read that fails for such a reason is repeated.
   */
  isPermanent: optional(boolean),
};
export const isRequestFailure = objectOf(requestFailure);
/** Why one HTTP request did not return the job. */
export type RequestFailure = Checked<typeof isRequestFailure>;
