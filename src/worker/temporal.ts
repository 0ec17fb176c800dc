import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger, NativeConnection } from '@temporalio/worker';
import { formatDuration } from '../core/units';
import type { TemporalConfig } from '../temporal/config';
import { tlsTrouble } from '../temporal/tls';
import { GRPC_STATUS } from '../temporal/grpc-status';
import { ensureSearchAttributes, SearchAttributesError } from '../temporal/search-attributes';
import { ConfigurationError } from './config';
import type { Redactor } from './logging';
import type { SdkRuntime } from './runtime';

/** A server that has just answered lists its namespaces within this time, unless it is overloaded. */
const NAMESPACE_LIMIT_MS = 10_000;

interface Waiters {
  readonly stop: AbortSignal;
  readonly readiness: Readiness;
  readonly logger: Logger;
}

/**
 * A connection to a Temporal server that has the namespace and the search attributes. It waits for each of these without a
 * limit, with a message each time, because containers start in any order. Workers must not start before the attributes
 * exist: a missing one silently stalls every workflow. An operator can add them meanwhile.
 *
 * @throws HopelessError when waiting can't help, and the reason of `stop` when it is aborted
 */
export async function connectToTemporal(
  config: TemporalConfig,
  runtime: SdkRuntime,
  { stop, readiness, logger }: Waiters,
): Promise<NativeConnection> {
  const { address, namespace } = config;
  const until = <T>(
    attempt: () => Promise<T>,
    explain: (error: unknown) => Trouble | Promise<Trouble>,
  ): Promise<T> =>
    untilItWorks(attempt, {
      signal: stop,
      explain,
      onTrouble: (message, nextTryMs) => {
        readiness.notReady(message);
        const next = nextTryMs === null ? 'still waiting' : `next try in ${formatDuration(nextTryMs)}`;
        logger.warn(`waiting for Temporal: ${message}; ${next}`);
      },
    });
  const explain = (error: unknown): Promise<Trouble> => {
    // Another process has taken the metrics port since the last attempt.
    if (error instanceof ConfigurationError) throw error;
    return troubleOf(error, config);
  };

  readiness.notReady(`connecting to Temporal at ${address}`);
  const connection = await until(() => runtime.connect(config.connection), explain);
  await until(() => describeNamespace(connection, namespace, NAMESPACE_LIMIT_MS), explain);
  const { registered } = await until(
    () => ensureSearchAttributes(connection, namespace),
    (error) =>
      error instanceof SearchAttributesError ? { message: error.message, heals: true } : explain(error),
  );
  if (registered.length > 0)
    logger.info(`search attributes registered: ${registered.join(', ')}`, { namespace });
  return connection;
}

/** As {@link explainTrouble}; where the core says only that the connection broke, a look at the server's TLS may tell why. */
export async function troubleOf(error: unknown, temporal: TemporalConfig): Promise<Trouble> {
  const { address, connection } = temporal;
  if (!CORE_SAYS.brokenOff.test(String(error))) return explainTrouble(error, temporal);
  const found = await tlsTrouble(address, connection.tls ?? connection.apiKey !== undefined);
  if (found === undefined) return explainTrouble(error, temporal);
  return { message: `Temporal at ${address} can't be reached: ${found.words}`, heals: !found.isCertain };
}

/** Temporal's Rust core reports a failed connection only as text, such as these (SDK 1.24, measured). */
const CORE_SAYS = {
  unauthenticated: 'does not have valid authentication credentials',
  permissionDenied: 'does not have permission',
  noTlsThere: 'InvalidContentType',
  certificate: 'InvalidCertificate',
  handshake:
    /AlertReceived|fatal alert|HandshakeFailure|InconsistentKeys|PrivateKeyParseError|CertificateParseError|PeerIncompatible/,
  refused: 'ConnectionRefused',
  brokenOff: /BrokenPipe|ConnectionReset|connection closed/,
  name: 'dns error',
  notGrpc: 'h2 protocol error',
};

/**
 * Why Temporal is not available, in words that name the variable to check, and whether waiting may help.
 *
 * Waiting helps with a server that is not up yet, and with a namespace that an initial job has still to create. It does not
 * help with the process's own settings: credentials and TLS settings are read once, at its start.
 */
export function explainTrouble(error: unknown, temporal: TemporalConfig): Trouble {
  const { address, namespace } = temporal;
  const text = error instanceof Error ? error.message : String(error);
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;

  if (code === GRPC_STATUS.UNAUTHENTICATED || text.includes(CORE_SAYS.unauthenticated)) {
    return hopeless(
      `Temporal at ${address} does not accept the credentials: check TEMPORAL_API_KEY or the TLS client certificate`,
    );
  }
  if (code === GRPC_STATUS.PERMISSION_DENIED || text.includes(CORE_SAYS.permissionDenied)) {
    return hopeless(
      `Temporal at ${address} denies access to the namespace ${JSON.stringify(namespace)}: check TEMPORAL_NAMESPACE and the permissions of the credentials`,
    );
  }
  if (code === GRPC_STATUS.NOT_FOUND) {
    return heals(
      `Temporal at ${address} has no namespace ${JSON.stringify(namespace)} yet: check TEMPORAL_NAMESPACE, or create it with "temporal operator namespace create --namespace ${namespace}"`,
    );
  }
  if (text.includes(CORE_SAYS.noTlsThere)) {
    return hopeless(
      `Temporal at ${address} does not speak TLS: unset TEMPORAL_TLS* (or set TEMPORAL_TLS=false), or check TEMPORAL_ADDRESS`,
    );
  }
  if (text.includes(CORE_SAYS.certificate)) {
    return hopeless(
      `the TLS certificate of Temporal at ${address} is not trusted (${tlsReason(text)}): check TEMPORAL_TLS_SERVER_CA_CERT_PATH and TEMPORAL_TLS_SERVER_NAME`,
    );
  }
  if (CORE_SAYS.handshake.test(text)) {
    return hopeless(
      `the TLS handshake with Temporal at ${address} failed (${tlsReason(text)}): check TEMPORAL_TLS_CLIENT_CERT_* and TEMPORAL_TLS_CLIENT_KEY_*`,
    );
  }
  if (text.includes(CORE_SAYS.refused))
    return heals(`Temporal at ${address} is not up yet (connection refused)`);
  if (text.includes(CORE_SAYS.name))
    return heals(`the name of ${address} is not known yet: check TEMPORAL_ADDRESS`);
  if (text.includes(CORE_SAYS.notGrpc)) {
    return heals(
      `the server at ${address} is not a Temporal server: check TEMPORAL_ADDRESS (the gRPC port, 7233 by default, not the Web UI's)`,
    );
  }
  return heals(`Temporal at ${address} can't be reached: ${text.slice(0, 300)}`);
}

function heals(message: string): Trouble {
  return { message, heals: true };
}

function hopeless(message: string): Trouble {
  return { message, heals: false };
}

/** `InvalidCertificate(UnknownIssuer)` out of the core's nested text. */
function tlsReason(text: string): string {
  return (
    /(?:InvalidCertificate|AlertReceived|PeerIncompatible|InconsistentKeys)\([^)]*\)+|fatal alert: \w+|HandshakeFailure|\w+ParseError/.exec(
      text,
    )?.[0] ?? 'unknown reason'
  );
}

/** The first wait after a failed attempt. A server that is just starting needs a second or two. */
const FIRST_WAIT_MS = 1_000;
/** The longest wait: it notices within ten seconds that a server is back, and keeps the log readable. */
const LONGEST_WAIT_MS = 10_000;

/** An attempt that takes longer is logged, so that the log explains the silence. */
const SILENCE_MS = 10_000;

/** Why an attempt failed, in words, and whether waiting can help. */
interface Trouble {
  readonly message: string;
  readonly heals: boolean;
}

/** Thrown for trouble with which waiting does not help. */
export class HopelessError extends Error {
  override readonly name = 'HopelessError';
}

export interface Waiting {
  /** Ends the wait. */
  readonly signal: AbortSignal;
  /** Says why an attempt failed. */
  readonly explain: (error: unknown) => Trouble | Promise<Trouble>;
  /** Called after each failed attempt and, with null for the next try, while an attempt has no answer. */
  readonly onTrouble: (message: string, nextTryMs: number | null) => void;
}

/**
 * Repeats an attempt until it succeeds, without a limit while waiting can help. The waits grow from one second to ten.
 *
 * @throws HopelessError when waiting can't help, and the signal's reason when it is aborted
 */
export async function untilItWorks<T>(attempt: () => Promise<T>, waiting: Waiting): Promise<T> {
  for (let failed = 1; ; failed++) {
    waiting.signal.throwIfAborted();
    try {
      return await watched(attempt(), waiting);
    } catch (error) {
      waiting.signal.throwIfAborted();
      const trouble = await waiting.explain(error);
      if (!trouble.heals) throw new HopelessError(trouble.message, { cause: error });
      waiting.onTrouble(trouble.message, waitAfterMs(failed));
    }
    // Aborted, it rejects with an AbortError; the next round throws the signal's own reason.
    await sleep(waitAfterMs(failed), undefined, { signal: waiting.signal }).catch(() => undefined);
  }
}

/** The wait after a number of failed attempts: 1, 2, 4, 8, 10, 10, … seconds. */
export function waitAfterMs(failed: number): number {
  return Math.min(FIRST_WAIT_MS * 2 ** (failed - 1), LONGEST_WAIT_MS);
}

/** The result of `attempt`, with a report while it takes long. */
async function watched<T>(attempt: Promise<T>, { signal, onTrouble }: Waiting): Promise<T> {
  const notice = setInterval(() => {
    onTrouble('no answer yet', null);
  }, SILENCE_MS);
  let stop: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => {
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([attempt, aborted]);
  } finally {
    clearInterval(notice);
    signal.removeEventListener('abort', stop);
    // After an abort the attempt may still fail later, when nobody waits for it any more.
    attempt.catch(() => undefined);
  }
}

/**
 * Asks the server about a namespace: whether the server is up, has the namespace, and lets this process in.
 *
 * @throws ServiceError with the gRPC status, after `limitMs` milliseconds at the latest
 */
async function describeNamespace(
  connection: NativeConnection,
  namespace: string,
  limitMs: number,
): Promise<void> {
  await connection.withDeadline(Date.now() + limitMs, () =>
    connection.workflowService.describeNamespace({ namespace }),
  );
}

/** A server that takes longer to answer is too slow to work with. */
const ASK_LIMIT_MS = 2_000;
/** Probes come every few seconds, from several places. The server is asked once in this time. */
const ANSWER_HOLDS_MS = 2_000;

/** Whether follow-ups are being worked on, for `/readyz`. */
export class Readiness {
  constructor(private readonly redactor: Redactor) {}

  private reasons: () => Promise<readonly string[]> | readonly string[] = () => ['the process is starting'];

  /** Not ready, for one reason, until the next call. */
  notReady(reason: string): void {
    this.reasons = () => [reason];
  }

  /** Ready, as long as `reasons` returns none. */
  readyUnless(reasons: () => Promise<readonly string[]>): void {
    this.reasons = reasons;
  }

  /** Why the worker is not ready, or nothing; redacted, because anybody may ask. */
  readonly check = async (): Promise<readonly string[]> => (await this.reasons()).map(this.redactor.text);
}

/** Why the server can't be reached, or nothing. The server is asked at most every two seconds. */
export function connectionCheck(
  connection: NativeConnection,
  temporal: TemporalConfig,
): () => Promise<readonly string[]> {
  let asked: { readonly at: number; readonly answer: Promise<readonly string[]> } | undefined;
  const ask = async (): Promise<readonly string[]> => {
    try {
      await describeNamespace(connection, temporal.namespace, ASK_LIMIT_MS);
      return [];
    } catch (error) {
      return [explainTrouble(error, temporal).message];
    }
  };
  return () => {
    const now = performance.now();
    if (asked === undefined || now - asked.at > ANSWER_HOLDS_MS) asked = { at: now, answer: ask() };
    return asked.answer;
  };
}
