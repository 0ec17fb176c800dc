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

export function errorTrouble(facts: readonly ErrorFact[]): SendTrouble {
  return trouble(facts[0]?.label ?? 'network error', describeFacts(facts));
}

/** Gateways say of their own routes with these what the service says of a job or a key. */
const ALSO_OF_GATEWAYS: ReadonlySet<number> = new Set([400, 401, 403, 404]);

/**
 * The trouble of an answer whose status is not a success. On a read, 400, 401, 403 and 404 are the service's word only with a
 * JSON object as body; otherwise no status is told, or a gateway without a route would end every follow-up.
 */
export function statusTrouble(answer: Answer, operation: Operation): SendTrouble {
  const label = `http ${answer.status}`;
  const said = truncate(wordsOf(answer) ?? '', MAX_QUOTE_CHARACTERS);
  if (operation === 'read' && ALSO_OF_GATEWAYS.has(answer.status) && !isObject(answer.body)) {
    const what = `but the body is no JSON object: a gateway, and not the service; ${CHECK_BASE_URL}`;
    return trouble(NOT_A_JOB, [`${label}, ${what}`, said].filter(Boolean).join('; '));
  }
  const phrases = [hintFor(answer, operation), said].filter(Boolean).join('; ');
  const meaning = STATUS_CODES[answer.status] ?? 'a status without a meaning';
  return answerTrouble(label, `${label}: ${phrases || meaning}`, answer);
}

export function bodyTrouble(answer: Answer, otherId: string | undefined): SendTrouble {
  const message = (label: string, what: string) =>
    answerTrouble(label, `http ${answer.status} ${what}`, answer);
  if (otherId !== undefined) {
    return message(
      'another job',
      `with the job ${JSON.stringify(singleLine(otherId, MAX_QUOTE_CHARACTERS))}, which was not asked for`,
    );
  }
  const [broken] = answer.brokenBy;
  if (broken !== undefined) {
    return message(broken.label, `but the body is not whole (${describeFacts(answer.brokenBy)})`);
  }
  const page = `with an HTML page instead of a job: ${CHECK_BASE_URL}`;
  return message(NOT_A_JOB, answer.body.kind === 'html' ? page : 'with a body that is no job');
}

function isObject(body: Body): boolean {
  return body.kind === 'json' && isRecord(body.value);
}

function hintFor(answer: Answer, operation: Operation): string | undefined {
  const { status, headers } = answer;
  if (status >= 300 && status < 400) {
    const location =
      headers.location === undefined ? '' : ` to ${singleLine(headers.location, MAX_QUOTE_CHARACTERS)}`;
    return `a redirect${location}, which is not followed; ${CHECK_BASE_URL}`;
  }
  if (answer.body.kind === 'html') {
    return `${STATUS_CODES[status] ?? 'an answer'}, with an HTML page; ${CHECK_BASE_URL}`;
  }
  if (status === 401) return 'the key is expired or wrong';
  if (status !== 403) return undefined;
  const may = operation === 'send' ? 'may read but not write' : 'may not read this project';
  return `the key ${may}, or this address is not allowed`;
}

/** A body that broke off is not quoted: the break may have cut the key in two. */
function wordsOf({ body, brokenBy }: Answer): string | undefined {
  return brokenBy.length === 0 ? serviceMessage(body) : undefined;
}

function answerTrouble(label: string, message: string, answer: Answer): SendTrouble {
  const words = wordsOf(answer);
  return { ...trouble(label, message), httpStatus: answer.status, ...(words && { serviceMessage: words }) };
}

export function trouble(label: string, message: string): SendTrouble {
  return { label, message: singleLine(message, MAX_MESSAGE_CHARACTERS) };
}

/** The words of an error, at most 1 KiB: of the service's `{"error": "…"}`, of the common shapes of gateways, or a short text. */
export function serviceMessage(body: Body): string | undefined {
  const value = body.kind === 'json' ? body.value : body.kind === 'text' ? body.text : undefined;
  const { error, message, detail } = isRecord(value) ? value : { error: value };
  const nested = isRecord(error) ? error.message : undefined;
  const words = [error, nested, message, detail].find((each) => typeof each === 'string');
  return singleLine(words ?? '', MAX_SERVICE_MESSAGE_CHARACTERS) || undefined;
}

/** One error at the bottom of a failure. */
export interface ErrorFact {
  /** `ECONNREFUSED`, `UND_ERR_SOCKET`, …; `invalid http` or `network error` where the error has no code. */
  readonly label: string;
  /** The error in a phrase for people: `ECONNREFUSED 127.0.0.1:4010`, `UND_ERR_SOCKET: other side closed`. */
  readonly text: string;
}

/** Errors don't nest deeper; a cycle of causes ends here. */
const MAX_DEPTH = 5;

/** One attempt for each address of a host; more of them say nothing new. */
const MAX_FACTS = 4;

/**
 * Node's AggregateError has an error for each address of a host; others have a `cause`.
 *
 * @param redact hides the key: an error may repeat what was sent
 */
export function errorFacts(
  error: unknown,
  redact: (text: string) => string = String,
  depth = MAX_DEPTH,
): ErrorFact[] {
  const fields = isRecord(error) ? error : {};
  const { errors, cause, code } = fields;
  if (depth > 0 && Array.isArray(errors) && errors.length > 0) {
    const facts = errors.slice(0, MAX_FACTS).flatMap((inner) => errorFacts(inner, redact, depth - 1));
    return facts.slice(0, MAX_FACTS);
  }
  if (depth > 0 && code === undefined && cause !== undefined) return errorFacts(cause, redact, depth - 1);
  const { label, text } = factOf(fields);
  return [{ label, text: redact(text) }];
}

export function describeFacts(facts: readonly ErrorFact[]): string {
  return [...new Set(facts.map(({ text }) => text))].join(', ');
}

function factOf({ code, name, message, reason, address, port, hostname }: JsonObject): ErrorFact {
  // OpenSSL's message is a line of its source code; its `reason` is for people ("wrong version number").
  const words = [reason, message].find((text) => typeof text === 'string')?.trim() ?? '';
  // A code becomes a label, which is counted: it must look like one.
  if (typeof code !== 'string' || !/^[A-Z][A-Z0-9_]{1,39}$/.test(code)) {
    // undici 7.30 looks its parser's codes (HPE_*) up in a table that has none, and leaves them out.
    const label = name === 'HTTPParserError' ? 'invalid http' : 'network error';
    return { label, text: words === '' ? label : words };
  }
  if (typeof address === 'string') {
    const host = address.includes(':') ? `[${address}]` : address;
    return { label: code, text: `${code} ${host}${typeof port === 'number' ? `:${port}` : ''}` };
  }
  if (typeof hostname === 'string') return { label: code, text: `${code} ${hostname}` };
  if (code === 'UND_ERR_SOCKET' && words === 'bad response') return { label: code, text: UNASKED_100 };
  const rest = words.replace(code, '').trim();
  return { label: code, text: (rest === '' ? code : `${code}: ${rest}`) + certificateHint(code) };
}

/** undici (7 and 8) gives up at one, and hides the answer that follows it. */
const UNASKED_100 =
  "UND_ERR_SOCKET: the service, or a proxy before it, answered 100 Continue without being asked, and the HTTP client can't read past it";

/** Source: Node's "X509 certificate error codes". */
const UNKNOWN_AUTHORITY =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_UNTRUSTED)$/;

function certificateHint(code: string): string {
  if (UNKNOWN_AUTHORITY.test(code)) {
    return '; for a private authority, start the worker with NODE_EXTRA_CA_CERTS, the path of its certificate';
  }
  return code === 'ERR_TLS_CERT_ALTNAME_INVALID' ? '; check the host of the URL' : '';
}
