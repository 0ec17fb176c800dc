import { STATUS_CODES } from 'node:http';
import type { SendTrouble } from '../core/activities';
import { isRecord, type JsonObject } from '../core/checks';
import { MAX_SERVICE_MESSAGE_CHARACTERS, singleLine, truncate } from '../core/text';
import type { Answer, Body } from './exchange';

/** Characters of a message for people: it stands in a summary. */
const MAX_MESSAGE_CHARACTERS = 400;

const MAX_QUOTE_CHARACTERS = 200;

const NOT_A_JOB = 'not a job';

const CHECK_BASE_URL = 'check AGENT_API_BASE_URL';

export type Operation = 'read' | 'send';

export function trouble(label: string, message: string): SendTrouble {
  return { label, message: singleLine(message, MAX_MESSAGE_CHARACTERS) };
}

/** Gateways say of their own routes with these what the service says of a job or a key. */
const ALSO_OF_GATEWAYS: ReadonlySet<number> = new Set([400, 401, 403, 404]);

/**
 * The trouble of an answer whose status is not a success. On a read, 400, 401, 403 and 404 are the service's word only with a
 * JSON object as body; otherwise no status is told, or a gateway without a route would end every follow-up.
 */
export function statusTrouble(answer: Answer, operation: Operation): SendTrouble {
  const { status, body } = answer;
  const label = `http ${status}`;
  const said = truncate(wordsOf(answer) ?? '', MAX_QUOTE_CHARACTERS);
  if (operation === 'read' && ALSO_OF_GATEWAYS.has(status) && !isRecord(body.value)) {
    const what = `${label}, but the body is no JSON object: a gateway, and not the service; ${CHECK_BASE_URL}`;
    return trouble(NOT_A_JOB, said === '' ? what : `${what}; ${said}`);
  }
  const phrases = [hintFor(answer, operation), said].filter(Boolean).join('; ');
  return answerTrouble(label, `${label}: ${phrases || (STATUS_CODES[status] ?? 'no known status')}`, answer);
}

/** The trouble of a success that is not the job. */
export function bodyTrouble(answer: Answer, otherId: string | undefined): SendTrouble {
  const { brokenBy } = answer;
  const about = (label: string, what: string) =>
    answerTrouble(label, `http ${answer.status} ${what}`, answer);
  if (otherId !== undefined) {
    const id = JSON.stringify(singleLine(otherId, MAX_QUOTE_CHARACTERS));
    return about('another job', `with the job ${id}, which was not asked for`);
  }
  if (brokenBy !== null) return about(brokenBy.label, `but the body is not whole (${brokenBy.message})`);
  const page = `with an HTML page instead of a job: ${CHECK_BASE_URL}`;
  return about(NOT_A_JOB, answer.body.isHtml ? page : 'with a body that is no job');
}

function hintFor({ status, headers, body }: Answer, operation: Operation): string | undefined {
  if (status >= 300 && status < 400) {
    const { location } = headers;
    const to = location === undefined ? '' : ` to ${singleLine(location, MAX_QUOTE_CHARACTERS)}`;
    return `a redirect${to}, which is not followed; ${CHECK_BASE_URL}`;
  }
  if (body.isHtml) return `${STATUS_CODES[status] ?? 'an answer'}, with an HTML page; ${CHECK_BASE_URL}`;
  if (status === 401) return 'the key is expired or wrong';
  if (status !== 403) return undefined;
  const may = operation === 'send' ? 'may read but not write' : 'may not read this project';
  return `the key ${may}, or this address is not allowed`;
}

/** A body that broke off is not quoted: the break may have cut the key in two. */
function wordsOf({ body, brokenBy }: Answer): string | undefined {
  return brokenBy === null ? serviceMessage(body) : undefined;
}

function answerTrouble(label: string, message: string, answer: Answer): SendTrouble {
  const serviceMessage = wordsOf(answer);
  return { ...trouble(label, message), httpStatus: answer.status, ...(serviceMessage && { serviceMessage }) };
}

/** The words of an error, at most 1 KiB: of the service's `{"error": "…"}`, of the common shapes of gateways, or a short text. */
export function serviceMessage({ value }: Body): string | undefined {
  const { error, message, detail } = isRecord(value) ? value : { error: value };
  const nested = isRecord(error) ? error.message : undefined;
  const words = [error, nested, message, detail].find((each) => typeof each === 'string');
  return singleLine(words ?? '', MAX_SERVICE_MESSAGE_CHARACTERS) || undefined;
}

/** Errors don't nest deeper; a cycle of causes ends here. */
const MAX_DEPTH = 5;

/**
 * The error at the bottom of a failure, or those of each address of a host (Node's AggregateError). Its label is a code, such as
 * `ECONNREFUSED`, or `invalid http` or `network error`; its message a phrase: `ECONNREFUSED 127.0.0.1:4010`.
 *
 * @param redact hides the key: an error may repeat what was sent
 */
export function errorTrouble(
  error: unknown,
  redact: (text: string) => string = String,
  depth = MAX_DEPTH,
): SendTrouble {
  const fields = isRecord(error) ? error : {};
  const { errors, cause, code } = fields;
  if (depth > 0 && Array.isArray(errors) && errors.length > 0) {
    const each = errors.map((inner) => errorTrouble(inner, redact, depth - 1));
    const messages = new Set(each.map(({ message }) => message));
    return trouble(each[0]?.label ?? '', [...messages].join(', '));
  }
  if (depth > 0 && code === undefined && cause !== undefined) return errorTrouble(cause, redact, depth - 1);
  const [label, text] = labelAndText(fields);
  return trouble(label, redact(text));
}

function labelAndText(error: JsonObject): [label: string, text: string] {
  const { code, name, message, reason, address, port, hostname } = error;
  // OpenSSL's message is a line of its source code; its `reason` is for people ("wrong version number").
  const words = [reason, message].find((text) => typeof text === 'string')?.trim() ?? '';
  // A code becomes a label, which is counted: it must look like one.
  if (typeof code !== 'string' || !/^[A-Z][A-Z0-9_]{1,39}$/.test(code)) {
    // undici 7.30 looks its parser's codes (HPE_*) up in a table that has none, and leaves them out.
    const label = name === 'HTTPParserError' ? 'invalid http' : 'network error';
    return [label, words || label];
  }
  if (typeof address === 'string') {
    const host = address.includes(':') ? `[${address}]` : address;
    return [code, `${code} ${host}${typeof port === 'number' ? `:${port}` : ''}`];
  }
  if (typeof hostname === 'string') return [code, `${code} ${hostname}`];
  const rest = words.replace(code, '').trim();
  return [code, (rest === '' ? code : `${code}: ${rest}`) + certificateHint(code)];
}

function certificateHint(code: string): string {
  // Source: Node's "X509 certificate error codes".
  if (/^(UNABLE_TO_(GET_ISSUER|VERIFY)_|CERT_UNTRUSTED$)|SELF_SIGNED_CERT/.test(code))
    return '; for a private authority, start the worker with NODE_EXTRA_CA_CERTS, the path of its certificate';
  return code === 'ERR_TLS_CERT_ALTNAME_INVALID' ? '; check the host of the URL' : '';
}
