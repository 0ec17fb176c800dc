import { type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici';
import type { JobAddress, JobAnswer, PostOutcome, SendTrouble } from '../core/activities';
import { percentEncode } from '../core/ids';
import { type ApiKeySource, checkedKey } from './api-key';
import { Cooldowns } from './cooldowns';
import { type Exchange, exchange, type ExchangeLimits } from './exchange';
import { jobAnswer, PROXY_CREDENTIALS, retryAfter, sendOutcome } from './outcome';
import { type Redact, Redactor } from './redaction';
import { describeFacts, errorFacts, errorTrouble, type Operation, trouble } from './trouble';

/** The agent service's two operations. What the wire does is a value, and never thrown. */
export interface AgentApi {
  /** Of one exchange, in milliseconds. */
  readonly timeoutMs: number;
  /** One GET of the job. Trouble is an answer too. */
  getJob(address: JobAddress, limits?: ReadLimits): Promise<JobAnswer>;
  /** One POST of the message, and what it proved. */
  sendMessage(message: JobAddress & { readonly prompt: string }, limits?: SendLimits): Promise<PostOutcome>;
  /** How long all cool-downs of projects so far are. */
  cooldownSeconds(): number;
  /** Waits for the exchanges under way, and closes every connection. */
  close(): Promise<void>;
}

export interface AgentApiOptions {
  /** An http or https URL; a path prefix and trailing slashes are fine. */
  readonly baseUrl: string;
  readonly apiKey: ApiKeySource;
  /** Of one exchange, in milliseconds, from connecting to the last byte. */
  readonly timeoutMs: number;
  /** For an https base URL. Nothing is taken from the environment here. @default none */
  readonly proxy?: Proxy | undefined;
  /** @internal a simulation plays the service here. @default by undici */
  readonly exchange?: typeof exchange;
}

export interface Proxy {
  /** What `HTTPS_PROXY` holds. */
  readonly url: string;
  /** What `NO_PROXY` holds. @default none */
  readonly noProxy?: string;
}

interface ReadLimits {
  /** @default that of the client */
  readonly timeoutMs?: number;
  /** A read before a POST waits while the service wants no POST. @default 'read' */
  readonly before?: Operation;
  /** It is made also while the service wants quiet. @default false */
  readonly insist?: boolean;
}

interface SendLimits {
  /** @default that of the client */
  readonly timeoutMs?: number;
  /**
   * Called once the connection is made (TLS included), right before the first byte is written: a process may have been frozen
   * while it was connecting. With a reason that it returns nothing is sent.
   */
  readonly beforeFirstByte?: () => string | undefined;
}

type Prepared =
  | { readonly path: string; readonly headers: Record<string, string> }
  | { readonly repeatable: boolean; readonly problem: SendTrouble & { retryAfterMs?: number } };

const MAX_CONNECT_TIMEOUT_MS = 10_000;

const CHECK_PROXY = 'check HTTPS_PROXY';

/** `identity`: a compressed body would have to be bounded twice. */
const HEADERS = {
  accept: 'application/json',
  'accept-encoding': 'identity',
  'cache-control': 'no-cache',
  'user-agent': 'agent-follow-up',
};

/** The label where nothing was asked, because the service wants quiet. */
export const COOLING_DOWN = 'cooling down';

/** It follows no redirect and repeats nothing. @throws TypeError for a `baseUrl` that can't be one */
export function createAgentApi(options: AgentApiOptions): AgentApi {
  const { baseUrl, apiKey, timeoutMs, proxy, exchange: make = exchange } = options;
  if (!/^https?:\/\/[^?#]+$/i.test(baseUrl) || !URL.canParse(baseUrl))
    throw new TypeError('baseUrl must be an http:// or https:// URL without query and fragment');
  const { origin, pathname } = new URL(baseUrl);
  const prefix = pathname.replace(/\/+$/, '');
  const redactor = new Redactor();
  const connectHint = proxy !== undefined && origin.startsWith('https:') ? `; ${CHECK_PROXY}` : '';
  const limitsOf = (limitMs: number): ExchangeLimits => ({
    timeoutMs: limitMs,
    connectTimeoutMs: Math.min(Math.ceil(limitMs / 3), MAX_CONNECT_TIMEOUT_MS),
    connectHint,
  });
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
    if (impossible !== undefined) return { repeatable: false, problem: trouble('invalid id', impossible) };
    if (quiet !== null) return { repeatable: true, problem: { label: COOLING_DOWN, ...quiet } };
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

  /** The id that was asked for is compared as it is. */
  function redactFor({ jobId }: JobAddress): Redact {
    return { text: redactor.text, field: (text) => (text === jobId ? text : redactor.field(text)) };
  }

  function thrown(error: unknown): SendTrouble {
    return errorTrouble(errorFacts(error, redactor.text));
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

/** Why no path can name this job: servers fold `.` and `..` even when they are encoded. The last gate after the request's check. */
function addressProblem({ projectId, jobId }: JobAddress): string | undefined {
  for (const [name, id] of Object.entries({ projectId, jobId })) {
    if (id === '' || id === '.' || id === '..' || !id.isWellFormed()) {
      return `${name} ${JSON.stringify(id)} can't be a segment of a URL's path`;
    }
  }
  return undefined;
}

/**
 * One that was used before, and that the server is closing, turns a POST into a message that may have arrived. Without
 * pipelining undici asks the server to close it after the answer.
 */
const FOR_ONE_POST: Pool.Options = { connections: 1, pipelining: 0 };

/** The exchange has time limits of its own; undici's for connecting closes the socket of an attempt that was given up. */
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
    // An http base URL is one of this machine or a mistake.
    httpProxy: '',
    noProxy: proxy.noProxy ?? '',
    proxyTls: { timeout: connectTimeoutMs },
    requestTls: { timeout: connectTimeoutMs },
    clientFactory: (proxyUrl: URL, factoryOptions: object) =>
      proxyConnections(proxyUrl, { ...factoryOptions, headersTimeout: connectTimeoutMs }),
  });
}

/** The code is our own: undici takes a proxy that hangs up for a lost connection, and asks for the tunnel again and again (7.30). */
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
