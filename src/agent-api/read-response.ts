import type { JobResponse, PostOutcome, RequestFailure } from '../contract/activities';
import { isRecord } from '../contract/checks';
import type { AgentJob } from '../contract/job';
import {
  MAX_FIELD_CHARACTERS,
  MAX_LINK_CHARACTERS,
  MAX_STATUS_CHARACTERS,
  plainText,
} from '../contract/text';
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

/**
 * Reads the fields of a job, and ignores all other fields. A field that has another type is null. Returns undefined without an ID
 * or a status. The ID is not cut, because it is compared with the requested ID.
 */
export function readJob({ value }: Body): AgentJob | undefined {
  if (!isRecord(value) || !isFilledText(value.id) || !isFilledText(value.status)) return undefined;
  const source = isRecord(value.source) ? value.source : {};
  return {
    id: value.id,
    status: plainText(value.status, MAX_STATUS_CHARACTERS),
    source: { repository: readText(source.repository), ref: readText(source.ref) },
    model: readText(value.model),
    prLink: readWebLink(value.prLink),
    createdAt: readText(value.createdAt),
    archivedAt: readText(value.archivedAt),
  };
}

function isFilledText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function readText(value: unknown): string | null {
  return typeof value === 'string' ? plainText(value, MAX_FIELD_CHARACTERS) : null;
}

/** Only an http or https URL is read, because the Web UI would run a `javascript:` URL. */
function readWebLink(value: unknown): string | null {
  const link = typeof value === 'string' ? value.trim() : '';
  const isWhole = link === plainText(link, MAX_LINK_CHARACTERS);
  return isWhole && URL.canParse(link) && /^https?:\/\/\S+$/i.test(link) ? link : null;
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
