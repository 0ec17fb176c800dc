import { z } from 'zod';
import type { JobResponse, PostOutcome, RequestFailure } from '../core/activities';
import type { AgentJob } from '../core/job';
import { MAX_FIELD_CHARACTERS, MAX_LINK_CHARACTERS, MAX_STATUS_CHARACTERS, plainText } from '../core/text';
import type { Answer, Body, Exchange } from './exchange';
import { failureFromBody, failureFromStatus, type Operation } from './response-failures';
import { retryAfter } from './retry-after';

export function toJobResponse(exchange: Exchange, jobId: string): JobResponse {
  if (exchange.kind === 'no answer') return { kind: 'failure', ...exchange.brokenBy };
  const read = readAnswer(exchange, jobId, 'read');
  if ('job' in read) return { kind: 'job', job: read.job };
  return { kind: 'failure', ...read.failure, ...waitOf(exchange) };
}

export function sendOutcome(exchange: Exchange, jobId: string): PostOutcome {
  if (exchange.kind === 'no answer') {
    const { started, brokenBy } = exchange;
    // Once the request was started, it may have arrived: neither written bytes nor an error code show the opposite.
    if (started) return { verdict: 'unknown', ...brokenBy };
    // Time, a new certificate or a restarted service can fix any other cause of a missing connection.
    const isPermanent = CONFIGURATION_ERROR.test(brokenBy.label);
    return { verdict: 'not-sent', reachedService: false, ...brokenBy, ...(isPermanent && { isPermanent }) };
  }
  const read = readAnswer(exchange, jobId, 'send');
  if ('job' in read) return { verdict: 'accepted', job: read.job };
  const verdict = verdictFromStatus(exchange.status, retryAfter(exchange) !== undefined);
  if (verdict !== 'not-sent') return { verdict, ...read.failure };
  return { verdict, reachedService: true, ...waitOf(exchange), ...read.failure };
}

function readAnswer(
  answer: Answer,
  jobId: string,
  operation: Operation,
): { job: AgentJob } | { failure: RequestFailure } {
  if (answer.status < 200 || answer.status >= 300) return { failure: failureFromStatus(answer, operation) };
  const job = readJob(answer.body);
  return job?.id === jobId ? { job } : { failure: failureFromBody(answer, job?.id) };
}

const text = z
  .string()
  .transform((value) => plainText(value, MAX_FIELD_CHARACTERS))
  .nullable()
  .catch(null);

/** Only an http or https URL is read, because the Web UI would run a `javascript:` URL. */
const link = z.string().trim().refine(isWebLink).nullable().catch(null);

/** Unknown fields are ignored. The ID is not cut, because it is compared with the requested ID. */
const jobSchema = z.object({
  id: z.string().min(1),
  status: z
    .string()
    .min(1)
    .transform((status) => plainText(status, MAX_STATUS_CHARACTERS)),
  source: z.object({ repository: text, ref: text }).catch({ repository: null, ref: null }),
  model: text,
  prLink: link,
  createdAt: text,
  archivedAt: text,
});

export function readJob(body: Body): AgentJob | undefined {
  return jobSchema.safeParse(body.value).data;
}

function isWebLink(value: string): boolean {
  if (!URL.canParse(value) || value !== plainText(value, MAX_LINK_CHARACTERS)) return false;
  return /^https?:\/\/\S+$/i.test(value);
}

/** The field is absent without a wait, because a data converter may write an undefined field as null. */
function waitOf(answer: Answer): { retryAfterMs?: number } {
  const retryAfterMs = retryAfter(answer);
  return retryAfterMs === undefined ? {} : { retryAfterMs };
}

/** The agent service rejects these requests before it processes the message: malformed, not allowed, or in the wrong state. */
const REJECTED: ReadonlySet<number> = new Set([400, 403, 404, 405, 409, 410, 413, 415, 422]);

/**
 * Returns the verdict of a POST without the job in its response. The status alone decides, because no error text permits a second
 * POST. After a 401, a new key fixes the cause, and after a 429 or a 403 with `Retry-After`, time does.
 *
 * Any other status shows nothing: a 2xx may be a portal's page, a redirect may come after the work, a request may be cut short
 * (408) or held (425) at any point, and gateways return 502, 503 (also with `Retry-After`) and 504 after forwarding a request.
 */
export function verdictFromStatus(
  status: number,
  hasRetryAfter: boolean,
): 'rejected' | 'not-sent' | 'unknown' {
  if (status === 401 || isRateLimited(status, hasRetryAfter)) return 'not-sent';
  return REJECTED.has(status) ? 'rejected' : 'unknown';
}

/** Whether a POST's response pauses the project's POSTs: the agent service limits the requests of a project. */
export function startsCooldown(response: Answer): boolean {
  return isRateLimited(response.status, retryAfter(response) !== undefined);
}

/** Some services return 403 with `Retry-After` instead of 429. */
function isRateLimited(status: number, hasRetryAfter: boolean): boolean {
  return status === 429 || (status === 403 && hasRetryAfter);
}

export const INVALID_ID = 'invalid_id';
export const PROXY_CREDENTIALS = 'PROXY_CREDENTIALS';

/** An invalid address, argument or header stays invalid when the request is repeated. */
const CONFIGURATION_ERROR =
  /^(invalid_id|PROXY_CREDENTIALS|UND_ERR_(INVALID_ARG|NOT_SUPPORTED)|ERR_(INVALID_(ARG_\w+|CHAR|URL)|UNESCAPED_CHARACTERS|SOCKET_BAD_PORT))$/;
