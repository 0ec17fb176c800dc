import { STATUS_CODES } from 'node:http';
import type { RequestFailure } from '../contract/request-failure';
import { isRecord } from '../contract/checks';
import { MAX_ID_CHARACTERS, MAX_SERVICE_MESSAGE_CHARACTERS, singleLine, truncate } from '../contract/text';
import { BAD_ENCODING } from './decode-body';
import { requestFailure } from './failure-from-error';
import type { HttpResponse, Body } from './http-request';
import { isRateLimit } from './retry-after';

const MAX_QUOTE_CHARACTERS = 200;

const NOT_A_JOB = 'not_a_job';

const CHECK_BASE_URL = 'check AGENT_API_BASE_URL';

export type Operation = 'read' | 'send';

/** The statuses that can come from the agent service (such as a missing job or a wrong key) or from a gateway without a route. */
const AMBIGUOUS_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404]);

/**
 * Describes a response whose status is not a success. On a read, 400, 401, 403 and 404 come from the agent service only if the
 * body is a JSON object. Otherwise, the failure has a `gatewayStatus` instead of an `httpStatus`. An `httpStatus` of 404
 * can end a follow-up, so a response from a gateway without a route must not set it.
 */
export function failureFromStatus(response: HttpResponse, operation: Operation): RequestFailure {
  const { status, body } = response;
  const statusText = `http ${status}`;
  const quoted = truncate(serviceMessageFrom(response) ?? '', MAX_QUOTE_CHARACTERS);
  const encodingProblem = describeBadEncoding(response);
  if (operation === 'read' && AMBIGUOUS_STATUSES.has(status) && !isRecord(body.value)) {
    if (encodingProblem !== undefined)
      return { ...requestFailure(BAD_ENCODING, `${statusText}: ${encodingProblem}`), gatewayStatus: status };
    const message = `${statusText}, probably from a gateway: the body is not a JSON object; ${CHECK_BASE_URL}`;
    const failure = requestFailure(NOT_A_JOB, quoted === '' ? message : `${message}; ${quoted}`);
    return { ...failure, gatewayStatus: status };
  }
  const phrases = [hintFor(response, operation), encodingProblem, quoted].filter(Boolean).join('; ');
  const message = `${statusText}: ${phrases || (STATUS_CODES[status] ?? 'an unknown status')}`;
  return failureFromResponse(`http_${status}`, message, response);
}

function describeBadEncoding({ failure }: HttpResponse): string | undefined {
  return failure?.label === BAD_ENCODING ? failure.message : undefined;
}

/**
 * Describes a 2xx response that does not have the requested job.
 *
 * @param jobId the requested ID
 * @param otherId the ID of the job in the response, if the response has a job
 */
export function failureFromBody(
  response: HttpResponse,
  jobId: string,
  otherId: string | undefined,
): RequestFailure {
  const { failure } = response;
  const describe = (label: string, problem: string) =>
    failureFromResponse(label, `http ${response.status} ${problem}`, response);
  if (otherId !== undefined) {
    const [other, requested] = [otherId, jobId].map((id) =>
      JSON.stringify(singleLine(id, MAX_ID_CHARACTERS)),
    );
    return describe('another_job', `with the job ${other} instead of the requested job ${requested}`);
  }
  const encodingProblem = describeBadEncoding(response);
  if (encodingProblem !== undefined)
    return describe(BAD_ENCODING, `with an unreadable body: ${encodingProblem}`);
  if (failure !== null) return describe(failure.label, `but the body is incomplete (${failure.message})`);
  const page = `with an HTML page instead of a job: ${CHECK_BASE_URL}`;
  return describe(NOT_A_JOB, response.body.isHtml ? page : 'with a body that is not a job');
}

function hintFor(response: HttpResponse, operation: Operation): string | undefined {
  const { status, headers, body } = response;
  if (status >= 300 && status < 400) {
    const { location } = headers;
    const to = location === undefined ? '' : ` to ${singleLine(location, MAX_QUOTE_CHARACTERS)}`;
    return `a redirect${to}, which is not followed; ${CHECK_BASE_URL}`;
  }
  if (body.isHtml)
    return `${STATUS_CODES[status] ?? 'an unknown status'}, with an HTML page; ${CHECK_BASE_URL}`;
  if (status === 401) return 'the key is expired or wrong';
  if (status !== 403) return undefined;
  if (isRateLimit(response)) return 'the agent service requested a wait with Retry-After';
  const may = operation === 'send' ? 'may read but not write' : 'may not read this project';
  return `the key ${may}, or the agent service does not allow the worker's IP address`;
}

/** Returns undefined for an incomplete body, because a part of the key at its end would not be redacted. */
function serviceMessageFrom({ body, failure }: HttpResponse): string | undefined {
  return failure === null ? serviceMessage(body) : undefined;
}

function failureFromResponse(label: string, message: string, response: HttpResponse): RequestFailure {
  const serviceMessage = serviceMessageFrom(response);
  return {
    ...requestFailure(label, message),
    httpStatus: response.status,
    ...(isRateLimit(response) && { isRateLimit: true }),
    ...(serviceMessage && { serviceMessage }),
  };
}

/**
 * Returns at most 1,024 characters of the error text: the agent service's `{"error": "…"}`, another common form, or a short
 * plain text.
 */
export function serviceMessage({ value }: Body): string | undefined {
  const { error, message, detail } = isRecord(value) ? value : { error: value };
  const nested = isRecord(error) ? error.message : undefined;
  const text = [error, nested, message, detail].find((each) => typeof each === 'string');
  return singleLine(text ?? '', MAX_SERVICE_MESSAGE_CHARACTERS) || undefined;
}
