import { STATUS_CODES } from 'node:http';
import type { SendTrouble } from '../core/activities';
import { isRecord, type JsonObject } from '../core/checks';
import { MAX_SERVICE_MESSAGE_CHARACTERS, singleLine, truncate } from '../core/text';
import type { Answer, Body } from './exchange';

/** Characters of a message for people: it stands in a summary, beside other things. */
const MAX_MESSAGE_CHARACTERS = 400;

/** Characters of anything quoted in such a message. The service's words stand in full in `serviceMessage`. */
const MAX_QUOTE_CHARACTERS = 200;

const NOT_A_JOB = 'not a job';

const CHECK_BASE_URL = 'check AGENT_API_BASE_URL';

export type Operation = 'read' | 'send';

/** The trouble of an exchange without an answer, or of an error that was thrown. */
export function errorTrouble(facts: readonly ErrorFact[]): SendTrouble {
  return trouble(facts[0]?.label ?? 'network error', describeFacts(facts));
}

/** What the service says of a job or a key with these, gateways say of their own routes. */
const ALSO_OF_GATEWAYS: ReadonlySet<number> = new Set([400, 401, 403, 404]);

/**
 * The trouble of an answer whose status is not a success. On a read, 400, 401, 403 and 404 are the service's word only with
 * a JSON object as body. Anything else is trouble like a page in place of the job, and carries no status: a gateway without
 * a route would end every follow-up. On a send the status counts: to call it refused is then the careful answer.
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

/** The trouble of a success whose body is not the job that was asked for. */
export function bodyTrouble(answer: Answer, otherId: string | undefined): SendTrouble {
  const message = (label: string, what: string) =>
    answerTrouble(label, `http ${answer.status} ${what}`, answer);
  if (otherId !== undefined) {
    return message('another job', `with the job ${JSON.stringify(quote(otherId))}, which was not asked for`);
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
    const location = headers.location === undefined ? '' : ` to ${quote(headers.location)}`;
    return `a redirect${location}, which is not followed; ${CHECK_BASE_URL}`;
  }
  if (answer.body.kind === 'html') {
    return `${STATUS_CODES[status] ?? 'an answer'}, with an HTML page; ${CHECK_BASE_URL}`;
  }
  if (status === 401) return 'the key is expired or wrong';
  if (status === 403) {
    return operation === 'send'
      ? 'the key may read but not write, or this address is not allowed'
      : 'the key may not read this project, or this address is not allowed';
  }
  return undefined;
}

/** A body that broke off is not quoted: the break may have cut the key in two. */
function wordsOf({ body, brokenBy }: Answer): string | undefined {
  return brokenBy.length === 0 ? serviceMessage(body) : undefined;
}

function quote(text: string): string {
  return singleLine(text, MAX_QUOTE_CHARACTERS);
}

function answerTrouble(label: string, message: string, answer: Answer): SendTrouble {
  const words = wordsOf(answer);
  return { ...trouble(label, message), httpStatus: answer.status, ...(words && { serviceMessage: words }) };
}

/** A trouble with its message on one line and within its bound. */
export function trouble(label: string, message: string): SendTrouble {
  return { label, message: singleLine(message, MAX_MESSAGE_CHARACTERS) };
}

/**
 * The service's own words in the body of an error, on one line and at most 1 KiB: those of `{"error": "…"}`, which the
 * service uses, of the common shapes of gateways before it, or a short plain text. HTML is never quoted.
 */
export function serviceMessage(body: Body): string | undefined {
  const value = body.kind === 'json' ? body.value : body.kind === 'text' ? body.text : undefined;
  const { error, message, detail } = isRecord(value) ? value : { error: value };
  const nested = isRecord(error) ? error.message : undefined;
  const words = [error, nested, message, detail].find((each) => typeof each === 'string');
  return singleLine(words ?? '', MAX_SERVICE_MESSAGE_CHARACTERS) || undefined;
}

/** What is known of one error at the bottom of a failure. */
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

/** The errors that a failure is made of. Node's AggregateError has one for each address of a host; others have a `cause`. */
export function errorFacts(error: unknown, depth = MAX_DEPTH): ErrorFact[] {
  const fields = isRecord(error) ? error : {};
  const { errors, cause, code } = fields;
  if (depth > 0 && Array.isArray(errors) && errors.length > 0) {
    const facts = errors.slice(0, MAX_FACTS).flatMap((inner) => errorFacts(inner, depth - 1));
    return facts.slice(0, MAX_FACTS);
  }
  if (depth > 0 && code === undefined && cause !== undefined) return errorFacts(cause, depth - 1);
  return [factOf(fields)];
}

/** As {@link errorFacts}, with the key hidden by `redact`: an error may repeat what was sent. */
export function redactedFacts(error: unknown, redact: (text: string) => string): ErrorFact[] {
  return errorFacts(error).map(({ label, text }) => ({ label, text: redact(text) }));
}

/** The facts in one phrase. */
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

/** undici (7 and 8) gives up at a `100 Continue`, which nobody asked for, and hides the answer that follows it. */
const UNASKED_100 =
  "UND_ERR_SOCKET: the service, or a proxy before it, answered 100 Continue without being asked, and the HTTP client can't read past it";

/** What OpenSSL calls a certificate whose authority it doesn't know (source: Node's "X509 certificate error codes"). */
const UNKNOWN_AUTHORITY =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_UNTRUSTED)$/;

function certificateHint(code: string): string {
  if (UNKNOWN_AUTHORITY.test(code)) {
    return '; for a private authority, start the worker with NODE_EXTRA_CA_CERTS, the path of its certificate';
  }
  return code === 'ERR_TLS_CERT_ALTNAME_INVALID' ? '; check the host of the URL' : '';
}
