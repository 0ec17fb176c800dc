import type { RequestFailure } from '../contract/request-failure';
import { isRecord, type JsonObject } from '../contract/checks';
import { singleLine } from '../contract/text';

/** The maximum length of a message, which appears in summaries in the Web UI. */
const MAX_MESSAGE_CHARACTERS = 400;

export function requestFailure(label: string, message: string): RequestFailure {
  return { label, message: singleLine(message, MAX_MESSAGE_CHARACTERS) };
}

/** The maximum depth of nested causes. The limit also ends a cycle of causes. */
const MAX_DEPTH = 5;

/** The labels for codes that only the HTTP client uses, and for codes that mean the same as another code. */
const LABEL_BY_CODE: Partial<Record<string, string>> = {
  UND_ERR_SOCKET: 'connection_closed',
  EPIPE: 'connection_closed',
  ECONNABORTED: 'connection_closed',
  UND_ERR_CONNECT_TIMEOUT: 'connect_timeout',
};

/**
 * Describes an error using its innermost cause. For a host with several addresses (Node's AggregateError), the message has the
 * failure of every address. The label is a code such as `ECONNREFUSED`, or `connection_closed`, `connect_timeout`, `invalid_http`
 * or `network_error`. The message is a phrase such as `ECONNREFUSED 127.0.0.1:4010`.
 *
 * @param redact hides the key, because an error may repeat a part of the request
 */
export function failureFromError(
  error: unknown,
  redact: (text: string) => string = String,
  depth = MAX_DEPTH,
): RequestFailure {
  const fields = isRecord(error) ? error : {};
  const { errors, cause, code } = fields;
  if (depth > 0 && Array.isArray(errors) && errors.length > 0) {
    const failures = errors.map((inner) => failureFromError(inner, redact, depth - 1));
    const messages = new Set(failures.map(({ message }) => message));
    return requestFailure(failures[0]?.label ?? '', [...messages].join(', '));
  }
  if (depth > 0 && code === undefined && cause !== undefined)
    return failureFromError(cause, redact, depth - 1);
  const [label, text] = labelAndText(fields);
  return requestFailure(label, redact(text));
}

function labelAndText(error: JsonObject): [label: string, text: string] {
  const { code, name, message, reason, address, port, hostname } = error;
  // OpenSSL's message is a line of OpenSSL's source code; `reason` is readable ("wrong version number").
  const errorText = [reason, message].find((text) => typeof text === 'string')?.trim() ?? '';
  // A code becomes the value of a metric's label, so any other text is not used.
  if (typeof code !== 'string' || !/^[A-Z][A-Z0-9_]{1,39}$/.test(code)) {
    // undici 7.30 omits the codes of its HTTP parser (HPE_*).
    const label = name === 'HTTPParserError' ? 'invalid_http' : 'network_error';
    return [label, errorText || label];
  }
  const label = code.startsWith('HPE_') ? 'invalid_http' : (LABEL_BY_CODE[code] ?? code);
  if (typeof address === 'string') {
    const host = address.includes(':') ? `[${address}]` : address;
    return [label, `${code} ${host}${typeof port === 'number' ? `:${port}` : ''}`];
  }
  if (typeof hostname === 'string') return [label, `${code} ${hostname}`];
  const rest = errorText.replace(code, '').trim();
  return [label, (rest === '' ? code : `${code}: ${rest}`) + certificateHint(code)];
}

function certificateHint(code: string): string {
  // Source: Node's "X509 certificate error codes".
  if (/^(UNABLE_TO_(GET_ISSUER|VERIFY)_|CERT_UNTRUSTED$)|SELF_SIGNED_CERT/.test(code))
    return '; for a private certificate authority, set NODE_EXTRA_CA_CERTS on the worker to the path of its certificate';
  return code === 'ERR_TLS_CERT_ALTNAME_INVALID' ? '; check the host of the URL' : '';
}
