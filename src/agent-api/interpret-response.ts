import type { JobResponse } from '../contract/activities';
import type { RequestFailure } from '../contract/request-failure';
import type { PostOutcome } from '../contract/send-result';
import { isRecord } from '../contract/checks';
import { isSameId } from '../contract/ids';
import type { AgentJob } from '../contract/job';
import {
  MAX_FIELD_CHARACTERS,
  MAX_LINK_CHARACTERS,
  MAX_STATUS_CHARACTERS,
  sanitizeField,
} from '../contract/text';
import type { HttpResponse, Body, HttpResult } from './http-request';
import { failureFromBody, failureFromStatus, type Operation } from './failure-from-response';
import { isRateLimit, readRetryAfter } from './retry-after';

export function toJobResponse(result: HttpResult, jobId: string): JobResponse {
  if (result.kind === 'no response') return { kind: 'failure', ...result.failure };
  const read = readJobFromResponse(result, jobId, 'read');
  if ('job' in read) return { kind: 'job', job: read.job };
  return { kind: 'failure', ...read.failure, ...retryAfterField(result) };
}

export function toPostOutcome(result: HttpResult, jobId: string): PostOutcome {
  if (result.kind === 'no response') {
    const { started, failure } = result;
    // A started request may have arrived. Neither the number of written bytes nor an error code shows the opposite.
    if (started) return { verdict: 'unknown', ...failure };
    // An invalid request and wrong proxy credentials are permanent. A later attempt, a new certificate or a restarted service can
    // fix any other cause.
    const isPermanent = PERMANENT_LABELS.test(failure.label);
    return { verdict: 'not-sent', reachedService: false, ...failure, ...(isPermanent && { isPermanent }) };
  }
  const read = readJobFromResponse(result, jobId, 'send');
  if ('job' in read) return { verdict: 'accepted', job: read.job };
  const verdict = verdictFromStatus(result);
  if (verdict !== 'not-sent') return { verdict, ...read.failure };
  return { verdict, reachedService: true, ...retryAfterField(result), ...read.failure };
}

function readJobFromResponse(
  response: HttpResponse,
  jobId: string,
  operation: Operation,
): { job: AgentJob } | { failure: RequestFailure } {
  if (response.status < 200 || response.status >= 300)
    return { failure: failureFromStatus(response, operation) };
  const job = readJob(response.body);
  if (job !== undefined && isSameId(job.id, jobId)) return { job };
  return { failure: failureFromBody(response, jobId, job?.id) };
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
    status: sanitizeField(value.status, MAX_STATUS_CHARACTERS),
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
  return typeof value === 'string' ? sanitizeField(value, MAX_FIELD_CHARACTERS) : null;
}

/** Returns an http or https URL. Any other text is null, because the Web UI would run a `javascript:` URL. */
function readWebLink(value: unknown): string | null {
  const link = typeof value === 'string' ? value.trim() : '';
  const isWhole = link === sanitizeField(link, MAX_LINK_CHARACTERS);
  return isWhole && URL.canParse(link) && /^https?:\/\/\S+$/i.test(link) ? link : null;
}

/** Returns an empty object without a `Retry-After`, because a data converter may write an undefined field as null. */
function retryAfterField(response: HttpResponse): { retryAfterMs?: number } {
  const retryAfterMs = readRetryAfter(response);
  return retryAfterMs === undefined ? {} : { retryAfterMs };
}

/** With these statuses, the agent service rejects a message before it processes it, for example because the job does not exist. */
const REJECTED_STATUSES: ReadonlySet<number> = new Set([400, 403, 404, 405, 409, 410, 413, 415, 422]);

/**
 * Returns the verdict of a POST whose response does not have the job. Only the status and `Retry-After` decide, because no
 * error text permits a second POST. After a 401, a new key fixes the cause. After a 429 or a 403 with `Retry-After`, the same
 * POST works later.
 *
 * Any other status leaves the delivery unknown. A 2xx may be the login page of a captive portal, and a redirect may come after
 * the message was processed. A gateway may return 408 or 425 at any point, and 502, 503 (also with `Retry-After`) or 504 after
 * forwarding a request.
 */
export function verdictFromStatus(
  response: Pick<HttpResponse, 'status' | 'headers'>,
): 'rejected' | 'not-sent' | 'unknown' {
  const { status } = response;
  if (status === 401 || isRateLimit(response)) return 'not-sent';
  return REJECTED_STATUSES.has(status) ? 'rejected' : 'unknown';
}

export const INVALID_ID = 'invalid_id';
export const PROXY_CREDENTIALS = 'PROXY_CREDENTIALS';

/** Matches the labels of permanent failures: an invalid address, argument or header, or wrong proxy credentials. */
const PERMANENT_LABELS =
  /^(invalid_id|PROXY_CREDENTIALS|UND_ERR_(INVALID_ARG|NOT_SUPPORTED)|ERR_(INVALID_(ARG_\w+|CHAR|URL)|UNESCAPED_CHARACTERS|SOCKET_BAD_PORT))$/;
