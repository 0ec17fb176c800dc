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

/**
 * The errors that a failure is made of. Node tries every address of a host (`localhost` is `::1` and `127.0.0.1`) and
 * reports an AggregateError, whose `errors` hold the facts; others wrap theirs in `cause`.
 */
export function errorFacts(error: unknown, depth = MAX_DEPTH): ErrorFact[] {
  const fields: ErrorFields = typeof error === 'object' && error !== null ? error : {};
  if (depth > 0 && Array.isArray(fields.errors) && fields.errors.length > 0) {
    const facts = fields.errors.slice(0, MAX_FACTS).flatMap((inner) => errorFacts(inner, depth - 1));
    return facts.slice(0, MAX_FACTS);
  }
  if (depth > 0 && fields.code === undefined && fields.cause !== undefined) {
    return errorFacts(fields.cause, depth - 1);
  }
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

type ErrorFields = Partial<
  Record<
    'errors' | 'cause' | 'code' | 'name' | 'message' | 'reason' | 'address' | 'port' | 'hostname',
    unknown
  >
>;

/** What OpenSSL calls a certificate whose authority it doesn't know (source: Node's "X509 certificate error codes"). */
const UNKNOWN_AUTHORITY =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_UNTRUSTED)$/;

function hintFor(code: string): string | undefined {
  if (UNKNOWN_AUTHORITY.test(code)) {
    return 'for a private authority, start the worker with NODE_EXTRA_CA_CERTS, the path of its certificate';
  }
  return code === 'ERR_TLS_CERT_ALTNAME_INVALID' ? 'check the host of the URL' : undefined;
}

/** undici (7 and 8) gives up at a `100 Continue`, which nobody asked for, and hides the answer that follows it. */
const UNASKED_100 =
  "UND_ERR_SOCKET: the service, or a proxy before it, answered 100 Continue without being asked, and the HTTP client can't read past it";

function factOf({ code, name, message, reason, address, port, hostname }: ErrorFields): ErrorFact {
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
  const hint = hintFor(code);
  return {
    label: code,
    text: (rest === '' ? code : `${code}: ${rest}`) + (hint === undefined ? '' : `; ${hint}`),
  };
}
