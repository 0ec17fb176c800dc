import { type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici';
import type { JobAddress, JobResponse } from '../contract/activities';
import type { PostOutcome } from '../contract/send-result';
import { idProblem } from '../contract/check-request';
import { canonicalId, isSameId, percentEncode } from '../contract/ids';
import { quote } from '../contract/text';
import { type SecretSource, parseSecret } from './secret-source';
import { Cooldowns, type PostCooldown } from './cooldowns';
import { failureFromError, requestFailure } from './failure-from-error';
import {
  connectionOptions,
  type HttpResult,
  sendHttpRequest,
  type HttpRequestOptions,
  type NoResponse,
} from './http-request';
import { INVALID_ID, toJobResponse, PROXY_CREDENTIALS, toPostOutcome } from './interpret-response';
import { Redactor } from './redaction';
import { isRateLimit, readRetryAfter } from './retry-after';

/**
 * The agent service's two operations. Each operation makes one HTTP request, and returns a failure instead of throwing it. `getJob`
 * never throws, and `sendMessage` throws only because of a bug.
 */
export interface AgentApi {
  /** The timeout of one HTTP request, in milliseconds. */
  readonly timeoutMs: number;
  /** Reads a job with one GET. */
  getJob(address: JobAddress, options?: ReadOptions): Promise<JobResponse>;
  /** Sends a message with one POST, even during a cool-down. A caller checks {@link cooldown} first. */
  sendMessage(message: JobAddress & { readonly prompt: string }, options?: SendOptions): Promise<PostOutcome>;
  /** Returns the reason why the project's POSTs are paused in this process, or null if they are not paused. */
  cooldown(projectId: string): PostCooldown | null;
  /** Closes the connections. Reads in progress fail. */
  close(): Promise<void>;
}

export interface AgentApiOptions {
  /** An http or https URL without query and fragment. A path prefix and trailing slashes are allowed. */
  readonly baseUrl: string;
  readonly apiKey: SecretSource;
  /** The timeout of one HTTP request, in milliseconds, from connecting to the last byte. */
  readonly timeoutMs: number;
  /** The proxy for an https base URL. The client does not read environment variables. @default none */
  readonly proxy?: Proxy | undefined;
  /** @internal Simulations and tests replace the HTTP client with this function. @default a client that uses undici */
  readonly sendHttpRequest?: typeof sendHttpRequest;
}

export interface Proxy {
  readonly url: string;
  /** The value of `NO_PROXY`. @default none */
  readonly noProxy?: string;
}

interface ReadOptions {
  /** The timeout of this request, in milliseconds. @default the client's timeout */
  readonly timeoutMs?: number;
}

interface SendOptions extends ReadOptions {
  /**
   * See {@link HttpRequestOptions}. The function can stop a request whose connection took too long, for example because the process
   * was suspended.
   */
  readonly beforeFirstByte?: () => string | undefined;
}

const MAX_CONNECT_TIMEOUT_MS = 10_000;

const CHECK_PROXY = 'check HTTPS_PROXY';

/** The client requests uncompressed bodies (`identity`), because a job is small. A compressed body is decoded nevertheless. */
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

/**
 * The maximum timeout, which is also the maximum of `AGENT_API_TIMEOUT`. With a longer timeout, the worker waits too long for a dead
 * connection.
 */
export const MAX_TIMEOUT_MS = 600_000;

/**
 * Checks a timeout in milliseconds, because Node's timers fire at once if a time is not a number or is too long.
 *
 * @throws TypeError, RangeError with the name of the option
 */
export function checkTimeoutMs(name: string, value: unknown): void {
  if (typeof value !== 'number')
    throw new TypeError(`${name} must be a number of milliseconds, such as 30_000; it is ${quote(value)}`);
  if (Number.isInteger(value) && value >= 1 && value <= MAX_TIMEOUT_MS) return;
  const range = `a whole number of milliseconds from 1 to ${MAX_TIMEOUT_MS}`;
  throw new RangeError(`${name} must be ${range}, such as 30_000; it is ${quote(value)}`);
}

/** @throws TypeError, RangeError with the name of the option, before any request is made */
function checkOptions({ baseUrl, apiKey, timeoutMs, proxy }: AgentApiOptions): void {
  if (!/^https?:\/\/[^?#]+$/i.test(baseUrl) || !URL.canParse(baseUrl))
    throw new TypeError('baseUrl must be an http:// or https:// URL without query and fragment');
  if (typeof (apiKey as SecretSource | undefined)?.current !== 'function')
    throw new TypeError('apiKey must be a key source, such as keyFromText(key) or await keyFromFile(path)');
  checkTimeoutMs('timeoutMs', timeoutMs);
  // The URL is not shown, because it may have a password.
  if (proxy !== undefined && !(/^https?:\/\//i.test(proxy.url) && URL.canParse(proxy.url)))
    throw new TypeError('proxy.url must be an http:// or https:// URL');
}

/**
 * Creates a client that follows no redirects and repeats no requests.
 *
 * @throws TypeError, RangeError if an option is invalid
 */
export function createAgentApi(options: AgentApiOptions): AgentApi {
  checkOptions(options);
  const { baseUrl, apiKey, timeoutMs, proxy, sendHttpRequest: sendRequest = sendHttpRequest } = options;
  const { origin, pathname } = new URL(baseUrl);
  const prefix = pathname.replace(/\/+$/, '');
  const redactor = new Redactor();
  const connectHint = proxy !== undefined && origin.startsWith('https:') ? `; ${CHECK_PROXY}` : '';
  const optionsFor = (requestTimeoutMs: number): HttpRequestOptions => ({
    timeoutMs: requestTimeoutMs,
    connectTimeoutMs: Math.min(Math.ceil(requestTimeoutMs / 3), MAX_CONNECT_TIMEOUT_MS),
    connectHint,
  });
  const createDispatcher = ({ connectTimeoutMs }: HttpRequestOptions, poolOptions?: Pool.Options) =>
    createConnections(origin, proxy, connectTimeoutMs, poolOptions);
  const reads = createDispatcher(optionsFor(timeoutMs));
  const cooldowns = new Cooldowns();

  /** Makes one HTTP request, or returns the reason why the request could not be started. */
  async function makeRequest(
    { projectId, jobId }: JobAddress,
    request: typeof GET | (typeof POST & { readonly body: string }),
    connections: Dispatcher,
    requestOptions: HttpRequestOptions,
  ): Promise<HttpResult> {
    const notStarted = (failure: NoResponse['failure']) =>
      ({ kind: 'no response', started: false, failure }) as const;
    const problem = idProblem(projectId) ?? idProblem(jobId);
    if (problem !== undefined)
      return notStarted(requestFailure(INVALID_ID, `a project or job ID ${problem}`));
    let key: string;
    try {
      // The key is checked again, because a custom key source may return any value.
      key = parseSecret(await apiKey.current(), 'the API key of the agent service');
    } catch (error) {
      return notStarted({ ...failureFromError(error, redactor.redact), label: 'no_key' });
    }
    redactor.addKey(key);
    const path = `${prefix}/v2/agent/${percentEncode(projectId)}/job/${percentEncode(jobId)}${request.path}`;
    const headers = { ...request.headers, authorization: `Bearer ${key}` };
    // The requested job ID is not redacted, because the response's ID is compared with it.
    const redact = (text: string) => (isSameId(text, jobId) ? text : redactor.redact(text));
    const options = { ...request, origin, path, headers };
    return sendRequest(connections, options, requestOptions, redact);
  }

  return {
    timeoutMs,
    async getJob(address, { timeoutMs: requestTimeoutMs = timeoutMs } = {}) {
      try {
        return toJobResponse(
          await makeRequest(address, GET, reads, optionsFor(requestTimeoutMs)),
          address.jobId,
        );
      } catch (error) {
        // A bug is reported as a failed read, because the Temporal server would retry a failed activity at a short interval.
        return { kind: 'failure', ...failureFromError(error, redactor.redact) };
      }
    },
    async sendMessage(message, { timeoutMs: requestTimeoutMs = timeoutMs, beforeFirstByte } = {}) {
      const requestOptions = { ...optionsFor(requestTimeoutMs), beforeFirstByte };
      const connection = createDispatcher(requestOptions, SINGLE_USE_CONNECTION);
      const body = JSON.stringify({ prompt: message.prompt });
      const result = await makeRequest(message, { ...POST, body }, connection, requestOptions);
      closeWithoutWaiting(connection);
      if (result.kind === 'response')
        cooldowns.recordResponse(canonicalId(message.projectId), isRateLimit(result), readRetryAfter(result));
      return toPostOutcome(result, message.jobId);
    },
    cooldown: (projectId) => cooldowns.find(canonicalId(projectId)),
    close: () => reads.destroy(),
  };
}

/** Closes the connection in the background and ignores errors, because closing must not delay or change the outcome of a POST. */
function closeWithoutWaiting(connection: Dispatcher): void {
  void Promise.resolve()
    .then(() => connection.destroy())
    .catch(() => undefined);
}

/**
 * Every POST uses a new connection, because the delivery is unknown if the agent service closes a reused connection during the
 * POST. Without pipelining, undici requests that the connection is closed after the response.
 */
const SINGLE_USE_CONNECTION: Pool.Options = { connections: 1, pipelining: 0 };

function createConnections(
  origin: string,
  proxy: Proxy | undefined,
  connectTimeoutMs: number,
  poolOptions: Pool.Options = {},
): Dispatcher {
  const options = { ...connectionOptions(connectTimeoutMs), ...poolOptions };
  if (proxy === undefined) return new Pool(origin, options);
  // In a tunnel (CONNECT), the proxy can read neither the key nor the prompt. The request starts after the TLS handshake.
  return new EnvHttpProxyAgent({
    ...options,
    httpsProxy: proxy.url,
    // An http base URL is on this machine or is a mistake, so the proxy is not used.
    httpProxy: '',
    noProxy: proxy.noProxy ?? '',
    requestTls: { timeout: connectTimeoutMs },
    clientFactory: (proxyUrl: URL) =>
      proxyConnections(proxyUrl, {
        ...connectionOptions(connectTimeoutMs),
        headersTimeout: connectTimeoutMs,
      }),
  });
}

/**
 * Replaces the codes of the proxy's errors. If the proxy closes the connection, the error's code is `UND_ERR_SOCKET`, after which
 * undici 7.30 repeats the CONNECT indefinitely. An error with another code ends the request.
 */
function proxyConnections(proxy: URL, options: Pool.Options): Dispatcher {
  const pool = new Pool(proxy.origin, options);
  const connect = pool.connect.bind(pool);
  const proxyError = (code: string, message: string) =>
    Object.assign(new Error(`${message}; ${CHECK_PROXY}`), { code });
  const tunnel = async (params: Parameters<typeof connect>[0]): Promise<Dispatcher.ConnectData> => {
    const response = await connect(params).catch((error: unknown) => {
      const { message } = failureFromError(error);
      throw proxyError('PROXY_ERROR', `the proxy ${proxy.host} did not open a tunnel: ${message}`);
    });
    const { statusCode, socket } = response;
    if (statusCode === 200) return response;
    socket.on('error', () => undefined).destroy();
    const code = statusCode === 407 ? PROXY_CREDENTIALS : 'PROXY_ERROR';
    throw proxyError(code, `the proxy ${proxy.host} returned ${statusCode} for CONNECT`);
  };
  return Object.assign(pool, { connect: tunnel });
}
