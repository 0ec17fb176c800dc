import { type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici';
import type { JobAddress, JobAnswer, PostOutcome, SendTrouble } from '../core/activities';
import { percentEncode } from '../core/ids';
import { type ApiKeySource, checkedKey } from './api-key';
import { Cooldowns } from './cooldowns';
import { type Exchange, exchange, type ExchangeLimits } from './exchange';
import { jobAnswer, PROXY_CREDENTIALS, retryAfter, sendOutcome } from './outcome';
import { type Redact, Redactor } from './redaction';
import { describeFacts, errorFacts, errorTrouble, type Operation, redactedFacts, trouble } from './trouble';

/** The agent service's two operations. What the wire does is never thrown: it is a value. */
export interface AgentApi {
  /** The limit of one exchange in milliseconds. */
  readonly timeoutMs: number;
  /** One GET of the job, on a pooled connection. Trouble is an answer too. */
  getJob(address: JobAddress, limits?: ReadLimits): Promise<JobAnswer>;
  /** One POST of the message, on a connection of its own, and what it proved. It is never repeated here. */
  sendMessage(message: JobAddress & { readonly prompt: string }, limits?: SendLimits): Promise<PostOutcome>;
  /** For how long the service has wanted no request for a project, all projects together, since the start. */
  cooldownSeconds(): number;
  /** Waits for the exchanges under way, each of which ends by its time limit, and closes every connection. */
  close(): Promise<void>;
}

export interface AgentApiOptions {
  /** `{base_url}`: an http or https URL; a path prefix and trailing slashes are fine. Checked with the configuration. */
  readonly baseUrl: string;
  readonly apiKey: ApiKeySource;
  /** The limit of one exchange in milliseconds, from connecting to the last byte of the body. */
  readonly timeoutMs: number;
  /** How an https base URL is reached. Nothing is taken from the environment here. @default directly */
  readonly proxy?: Proxy | undefined;
  /**
   * How one request is made. @default by undici; a simulation plays the service here
   *
   * @internal
   */
  readonly exchange?: typeof exchange;
}

/** The proxy through which an https base URL is reached. */
export interface Proxy {
  /** An http or https URL, with user and password where the proxy wants them: what `HTTPS_PROXY` holds. */
  readonly url: string;
  /** Hosts that are reached directly: what `NO_PROXY` holds. @default none */
  readonly noProxy?: string;
}

interface Limits {
  /** Instead of the client's `timeoutMs`, where less time is left. */
  readonly timeoutMs?: number;
}

interface ReadLimits extends Limits {
  /** What the read is for: one before a POST waits while the service wants no POST. @default 'read' */
  readonly before?: Operation;
  /** It is made also while the service wants quiet: a person asks for it, or it is the last one. @default false */
  readonly insist?: boolean;
}

interface SendLimits extends Limits {
  /**
   * Called once the connection is made (TLS included), before the first byte of the request is written, with nothing
   * asynchronous in between. A reason that it returns, or throws, destroys the connection, and nothing was sent. It
   * guards against a process that was frozen while it was connecting.
   */
  readonly beforeFirstByte?: () => string | undefined;
}

type Prepared =
  | { readonly path: string; readonly headers: Record<string, string> }
  | { readonly repeatable: boolean; readonly problem: SendTrouble & { retryAfterMs?: number } };

/** A usable connection takes no longer, and a send that still waits for one is provably not sent. */
const MAX_CONNECT_TIMEOUT_MS = 10_000;

const CHECK_PROXY = 'check HTTPS_PROXY';

/** `identity`: a compressed body would have to be bounded twice. */
const HEADERS = {
  accept: 'application/json',
  'accept-encoding': 'identity',
  'cache-control': 'no-cache',
  'user-agent': 'agent-follow-up',
};

/** The label of what was not asked, because the service wants quiet. */
export const COOLING_DOWN = 'cooling down';

/** The client of the agent service. It follows no redirect and repeats nothing. */
export function createAgentApi(options: AgentApiOptions): AgentApi {
  const { baseUrl, apiKey, timeoutMs, proxy, exchange: make = exchange } = options;
  const { origin, pathname } = new URL(baseUrl);
  const prefix = pathname.replace(/\/+$/, '');
  const redactor = new Redactor();
  const hint = proxy !== undefined && origin.startsWith('https:') ? `; ${CHECK_PROXY}` : '';
  const limitsOf = (limitMs: number): ExchangeLimits => {
    const connectTimeoutMs = Math.min(Math.ceil(limitMs / 3), MAX_CONNECT_TIMEOUT_MS);
    return { timeoutMs: limitMs, connectTimeoutMs, connectHint: hint };
  };
  const reads = connectionsTo(origin, proxy, limitsOf(timeoutMs).connectTimeoutMs);
  const cooldowns = new Cooldowns();
  const underWay = new Set<Promise<unknown>>();
  let closed = false;

  function track<T>(work: Promise<T>): Promise<T> {
    underWay.add(work);
    return work.finally(() => underWay.delete(work));
  }

  async function read(
    address: JobAddress,
    { timeoutMs: ownTimeoutMs = timeoutMs, before = 'read', insist = false }: ReadLimits,
  ): Promise<JobAnswer> {
    const quiet = insist ? null : cooldowns.of(before, address.projectId);
    const prepared = await prepare(address, quiet);
    if ('problem' in prepared) return { kind: 'trouble', ...prepared.problem };
    const request = { origin, method: 'GET', ...prepared } as const;
    const result = await make(reads, request, limitsOf(ownTimeoutMs), redactFor(address));
    return jobAnswer(heard('read', address, result), address.jobId);
  }

  async function send(
    message: JobAddress & { readonly prompt: string },
    { timeoutMs: ownTimeoutMs = timeoutMs, beforeFirstByte }: SendLimits,
  ): Promise<PostOutcome> {
    const prepared = await prepare(message, cooldowns.of('send', message.projectId));
    if ('problem' in prepared) {
      const { repeatable, problem } = prepared;
      return { verdict: 'not-sent', repeatable, answered: false, ...problem };
    }
    const limits = { ...limitsOf(ownTimeoutMs), beforeFirstByte };
    const request: Dispatcher.DispatchOptions = {
      origin,
      method: 'POST',
      path: `${prepared.path}/message`,
      headers: { ...prepared.headers, 'content-type': 'application/json' },
      body: JSON.stringify({ prompt: message.prompt }),
    };
    const connection = connectionsTo(origin, proxy, limits.connectTimeoutMs, FOR_ONE_POST);
    const result = heard('send', message, await make(connection, request, limits, redactFor(message)));
    await connection.destroy();
    return sendOutcome(result, message.jobId);
  }

  /** Path and headers of a request, or why there can be none: then nothing was sent. */
  async function prepare(address: JobAddress, quiet: ReturnType<Cooldowns['of']>): Promise<Prepared> {
    const impossible = addressProblem(address);
    if (impossible !== undefined) {
      return { repeatable: false, problem: trouble('invalid id', impossible) };
    }
    if (quiet !== null) {
      const { message, retryAfterMs } = quiet;
      return { repeatable: true, problem: { ...trouble(COOLING_DOWN, message), retryAfterMs } };
    }
    if (closed) return { repeatable: true, problem: trouble('closed', 'the agent API client is closed') };
    try {
      // A source of the caller's own may give anything.
      const key = checkedKey(await apiKey.current(), 'the key of the agent service');
      redactor.remember(key);
      const [project, job] = [percentEncode(address.projectId), percentEncode(address.jobId)];
      return {
        path: `${prefix}/v2/agent/${project}/job/${job}`,
        headers: { ...HEADERS, authorization: `Bearer ${key}` },
      };
    } catch (error) {
      return { repeatable: true, problem: { ...thrown(error), label: 'no key' } };
    }
  }

  function heard(operation: Operation, { projectId }: JobAddress, result: Exchange): Exchange {
    if (result.kind === 'answer')
      cooldowns.heard(operation, projectId, result.status, retryAfter(result).retryAfterMs);
    return result;
  }

  /** The id that was asked for is compared as it is, and is no secret, whatever it looks like. */
  function redactFor({ jobId }: JobAddress): Redact {
    return { text: redactor.text, field: (text) => (text === jobId ? text : redactor.field(text)) };
  }

  function thrown(error: unknown): SendTrouble {
    return errorTrouble(redactedFacts(error, redactor.text));
  }

  return {
    timeoutMs,
    cooldownSeconds: () => cooldowns.totalSeconds,
    getJob: (address, limits = {}) =>
      track(read(address, limits).catch((error: unknown) => ({ kind: 'trouble', ...thrown(error) }))),
    sendMessage: (message, limits = {}) => track(send(message, limits)),
    async close() {
      closed = true;
      await Promise.allSettled([...underWay]);
      await reads.destroy();
    },
  };
}

/**
 * Why no path can name this job, or undefined. `.` and `..` are folded by servers even when they are encoded, so the
 * message might reach another resource. The request checker refuses such ids before; this is the last gate.
 */
function addressProblem({ projectId, jobId }: JobAddress): string | undefined {
  for (const [name, id] of Object.entries({ projectId, jobId })) {
    if (id === '' || id === '.' || id === '..' || !id.isWellFormed()) {
      return `${name} ${JSON.stringify(id)} can't be a segment of a URL's path`;
    }
  }
  return undefined;
}

/**
 * A connection of its own for each POST: one that was used before, and that the server is closing, turns a POST into a
 * message that may have arrived. Without pipelining undici asks the server to close it after the answer.
 */
const FOR_ONE_POST: Pool.Options = { connections: 1, pipelining: 0 };

/**
 * The exchange has time limits of its own. undici's for connecting stays, because it closes the socket of an attempt
 * that the exchange has given up; the others are off.
 */
function connectionsTo(
  origin: string,
  proxy: Proxy | undefined,
  connectTimeoutMs: number,
  own: Pool.Options = {},
): Dispatcher {
  const options = { headersTimeout: 0, bodyTimeout: 0, connectTimeout: connectTimeoutMs, ...own };
  if (proxy === undefined) return new Pool(origin, options);
  // A tunnel (CONNECT), so that the proxy sees neither key nor prompt. The request begins when TLS inside it is made.
  return new EnvHttpProxyAgent({
    ...options,
    httpsProxy: proxy.url,
    // An http base URL is one of this machine or a mistake; and nothing is read from the environment here.
    httpProxy: '',
    noProxy: proxy.noProxy ?? '',
    proxyTls: { timeout: connectTimeoutMs },
    requestTls: { timeout: connectTimeoutMs },
    clientFactory: (proxyUrl: URL, factoryOptions: object) =>
      proxyConnections(proxyUrl, { ...factoryOptions, headersTimeout: connectTimeoutMs }),
  });
}

/**
 * The proxy kept us from connecting, so nothing was sent. The codes are our own: undici takes a proxy that hangs up for a
 * lost connection to the service, and asks for the tunnel again and again (7.30).
 */
function proxyError(code: 'PROXY_ERROR' | typeof PROXY_CREDENTIALS, message: string, cause?: unknown): Error {
  return Object.assign(new Error(`${message}; ${CHECK_PROXY}`, { cause }), { code });
}

function proxyConnections(proxy: URL, options: Pool.Options): Dispatcher {
  const pool = new Pool(proxy.origin, options);
  const connect = pool.connect.bind(pool);
  const tunnel = async (params: Parameters<typeof connect>[0]): Promise<Dispatcher.ConnectData> => {
    const answer = await connect(params).catch((cause: unknown) => {
      const why = describeFacts(errorFacts(cause));
      throw proxyError('PROXY_ERROR', `no tunnel through the proxy ${proxy.host}: ${why}`, cause);
    });
    const { statusCode, socket } = answer;
    if (statusCode === 200) return answer;
    socket.on('error', () => undefined).destroy();
    const code = statusCode === 407 ? PROXY_CREDENTIALS : 'PROXY_ERROR';
    throw proxyError(code, `the proxy ${proxy.host} answered CONNECT with ${statusCode}`);
  };
  return Object.assign(pool, { connect: tunnel });
}
