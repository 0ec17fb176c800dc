import { type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici';
import type { JobAddress, JobAnswer, PostOutcome } from '../core/activities';
import { idProblem } from '../core/check-request';
import { percentEncode } from '../core/ids';
import { type ApiKeySource, checkedKey } from './api-key';
import { Cooldowns } from './cooldowns';
import { type Exchange, exchange, type ExchangeLimits, type NoAnswer } from './exchange';
import { INVALID_ID, jobAnswer, PROXY_CREDENTIALS, retryAfter, sendOutcome } from './outcome';
import { Redactor } from './redaction';
import { errorTrouble, type Operation, trouble } from './trouble';

/** The agent service's two operations, of one exchange each. What the wire does is a value, and never thrown. */
export interface AgentApi {
  /** Of one exchange, in milliseconds. */
  readonly timeoutMs: number;
  getJob(address: JobAddress, limits?: ReadLimits): Promise<JobAnswer>;
  sendMessage(message: JobAddress & { readonly prompt: string }, limits?: SendLimits): Promise<PostOutcome>;
  /** Closes its connections; reads under way break off. */
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
  /** See {@link ExchangeLimits}: a process may have been frozen while it was connecting. */
  readonly beforeFirstByte?: () => string | undefined;
}

const MAX_CONNECT_TIMEOUT_MS = 10_000;

const CHECK_PROXY = 'check HTTPS_PROXY';

/** `identity`: a compressed body would have to be bounded twice. */
const HEADERS = {
  accept: 'application/json',
  'accept-encoding': 'identity',
  'cache-control': 'no-cache',
  'user-agent': 'agent-follow-up',
};

const GET = { method: 'GET', path: '', headers: HEADERS } as const;
const POST = {
  method: 'POST',
  path: '/message',
  headers: { ...HEADERS, 'content-type': 'application/json' },
} as const;

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

  /** One exchange, if there can be one. */
  async function ask(
    { projectId, jobId }: JobAddress,
    request: typeof GET | (typeof POST & { readonly body: string }),
    quiet: NoAnswer['brokenBy'] | null,
    connections: Dispatcher,
    limits: ExchangeLimits,
  ): Promise<Exchange> {
    const unasked = (brokenBy: NoAnswer['brokenBy']) =>
      ({ kind: 'no answer', started: false, brokenBy }) as const;
    const impossible = idProblem(projectId) ?? idProblem(jobId);
    if (impossible !== undefined) return unasked(trouble(INVALID_ID, `a project or job id ${impossible}`));
    if (quiet !== null) return unasked(quiet);
    let key: string;
    try {
      // A source of the caller's own may give anything.
      key = checkedKey(await apiKey.current(), 'the key of the agent service');
    } catch (error) {
      return unasked({ ...errorTrouble(error, redactor.text), label: 'no key' });
    }
    redactor.remember(key);
    const path = `${prefix}/v2/agent/${percentEncode(projectId)}/job/${percentEncode(jobId)}${request.path}`;
    const headers = { ...request.headers, authorization: `Bearer ${key}` };
    // The id that was asked for is compared as it is.
    const field = (text: string) => (text === jobId ? text : redactor.field(text));
    const asked = { ...request, origin, path, headers };
    const result = await make(connections, asked, limits, { text: redactor.text, field });
    const operation = request.method === 'GET' ? 'read' : 'send';
    if (result.kind === 'answer') cooldowns.heard(operation, projectId, result.status, retryAfter(result));
    return result;
  }

  return {
    timeoutMs,
    async getJob(address, { timeoutMs: ownTimeoutMs = timeoutMs, before = 'read', insist = false } = {}) {
      try {
        const quiet = insist ? null : cooldowns.of(before, address.projectId);
        return jobAnswer(await ask(address, GET, quiet, reads, limitsOf(ownTimeoutMs)), address.jobId);
      } catch (error) {
        // A bug must not be repeated by the server's short interval.
        return { kind: 'trouble', ...errorTrouble(error, redactor.text) };
      }
    },
    async sendMessage(message, { timeoutMs: ownTimeoutMs = timeoutMs, beforeFirstByte } = {}) {
      const quiet = cooldowns.of('send', message.projectId);
      const limits = { ...limitsOf(ownTimeoutMs), beforeFirstByte };
      const connection = connectionsTo(origin, proxy, limits.connectTimeoutMs, FOR_ONE_POST);
      const body = JSON.stringify({ prompt: message.prompt });
      const result = await ask(message, { ...POST, body }, quiet, connection, limits);
      await connection.destroy();
      return sendOutcome(result, message.jobId);
    },
    close: () => reads.destroy(),
  };
}

/**
 * A kept connection that the server is closing turns a POST into a message that may have arrived. Without pipelining undici asks
 * the server to close it after the answer.
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
  // By a tunnel (CONNECT) the proxy sees neither key nor prompt. The request begins when TLS inside it is made.
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

/** The codes are our own: undici takes a proxy that hangs up for a lost connection, and asks for the tunnel again and again (7.30). */
function proxyConnections(proxy: URL, options: Pool.Options): Dispatcher {
  const pool = new Pool(proxy.origin, options);
  const connect = pool.connect.bind(pool);
  const proxyError = (code: string, message: string) =>
    Object.assign(new Error(`${message}; ${CHECK_PROXY}`), { code });
  const tunnel = async (params: Parameters<typeof connect>[0]): Promise<Dispatcher.ConnectData> => {
    const answer = await connect(params).catch((error: unknown) => {
      const { message } = errorTrouble(error);
      throw proxyError('PROXY_ERROR', `no tunnel through the proxy ${proxy.host}: ${message}`);
    });
    const { statusCode, socket } = answer;
    if (statusCode === 200) return answer;
    socket.on('error', () => undefined).destroy();
    const code = statusCode === 407 ? PROXY_CREDENTIALS : 'PROXY_ERROR';
    throw proxyError(code, `the proxy ${proxy.host} answered CONNECT with ${statusCode}`);
  };
  return Object.assign(pool, { connect: tunnel });
}
