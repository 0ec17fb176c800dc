import { STATUS_CODES } from 'node:http';
import type { RequestFailure } from '../contract/activities';
import { isRecord } from '../contract/checks';
import { MAX_SERVICE_MESSAGE_CHARACTERS, singleLine, truncate } from '../contract/text';
import { requestFailure } from './error-failures';
import type { Answer, Body } from './exchange';
import { retryAfter } from './retry-after';

const MAX_QUOTE_CHARACTERS = 200;

const NOT_A_JOB = 'not_a_job';

const CHECK_BASE_URL = 'check AGENT_API_BASE_URL';

export type Operation = 'read' | 'send';

/** A gateway without a route returns the same statuses as the agent service for a missing job or a wrong key. */
const STATUSES_OF_GATEWAYS: ReadonlySet<number> = new Set([400, 401, 403, 404]);

/**
 * Describes a response whose status is not a success. On a read, 400, 401, 403 and 404 come from the agent service only if the
 * body is a JSON object. Otherwise the failure has a `gatewayStatus` instead of an `httpStatus`, because a gateway without a route
 * would end every follow-up.
 */
export function failureFromStatus(answer: Answer, operation: Operation): RequestFailure {
  const { status, body } = answer;
  const words = `http ${status}`;
  const quoted = truncate(serviceMessageFrom(answer) ?? '', MAX_QUOTE_CHARACTERS);
  if (operation === 'read' && STATUSES_OF_GATEWAYS.has(status) && !isRecord(body.value)) {
    const message = `${words} from a gateway, because the body is not a JSON object; ${CHECK_BASE_URL}`;
    const failure = requestFailure(NOT_A_JOB, quoted === '' ? message : `${message}; ${quoted}`);
    return { ...failure, gatewayStatus: status };
  }
  const phrases = [hintFor(answer, operation), quoted].filter(Boolean).join('; ');
  const message = `${words}: ${phrases || (STATUS_CODES[status] ?? 'an unknown status')}`;
  return responseFailure(`http_${status}`, message, answer);
}

/** Describes a 2xx response that does not have the job. */
export function failureFromBody(answer: Answer, otherId: string | undefined): RequestFailure {
  const { brokenBy } = answer;
  const about = (label: string, what: string) =>
    responseFailure(label, `http ${answer.status} ${what}`, answer);
  if (otherId !== undefined) {
    const id = JSON.stringify(singleLine(otherId, MAX_QUOTE_CHARACTERS));
    return about('another_job', `with the job ${id} instead of the requested job`);
  }
  if (brokenBy !== null) return about(brokenBy.label, `but the body is incomplete (${brokenBy.message})`);
  const page = `with an HTML page instead of a job: ${CHECK_BASE_URL}`;
  return about(NOT_A_JOB, answer.body.isHtml ? page : 'with a body that is not a job');
}

function hintFor(response: Answer, operation: Operation): string | undefined {
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
  if (operation === 'send' && retryAfter(response) !== undefined)
    return 'the agent service requested a wait with Retry-After';
  const may = operation === 'send' ? 'may read but not write' : 'may not read this project';
  return `the key ${may}, or this address is not allowed`;
}

/** An incomplete body is not quoted, because a part of the key at its end would not be redacted. */
function serviceMessageFrom({ body, brokenBy }: Answer): string | undefined {
  return brokenBy === null ? serviceMessage(body) : undefined;
}

function responseFailure(label: string, message: string, answer: Answer): RequestFailure {
  const serviceMessage = serviceMessageFrom(answer);
  return {
    ...requestFailure(label, message),
    httpStatus: answer.status,
    ...(serviceMessage && { serviceMessage }),
  };
}

/** Returns at most 1 KiB of the error text: the agent service's `{"error": "…"}`, a gateway's common shapes, or a short text. */
export function serviceMessage({ value }: Body): string | undefined {
  const { error, message, detail } = isRecord(value) ? value : { error: value };
  const nested = isRecord(error) ? error.message : undefined;
  const words = [error, nested, message, detail].find((each) => typeof each === 'string');
  return singleLine(words ?? '', MAX_SERVICE_MESSAGE_CHARACTERS) || undefined;
}
