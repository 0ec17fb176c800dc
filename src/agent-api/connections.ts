import { Client, type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici';
import { describeFacts, errorFacts } from './error-facts';

/** The proxy through which an https base URL is reached. */
export interface Proxy {
  /** An http or https URL, with user and password where the proxy wants them: what `HTTPS_PROXY` holds. */
  readonly url: string;
  /** Hosts that are reached directly: what `NO_PROXY` holds. @default none */
  readonly noProxy?: string;
}

interface Connecting {
  /** Scheme, host and port of the agent service. */
  readonly origin: string;
  /** From nothing to a connection that can carry a request, in milliseconds. */
  readonly connectTimeoutMs: number;
  readonly proxy: Proxy | undefined;
}

/** Connections that are kept and shared, for reads. */
export function keptConnections({ origin, connectTimeoutMs, proxy }: Connecting): Dispatcher {
  const options = connectionOptions(connectTimeoutMs);
  return proxy === undefined ? new Pool(origin, options) : throughProxy(proxy, connectTimeoutMs, options);
}

/**
 * One connection for one POST. A pooled connection that the server is closing turns a POST into a message that may have
 * arrived. Without pipelining undici asks the server to close this one after the answer.
 */
export function freshConnection({ origin, connectTimeoutMs, proxy }: Connecting): Dispatcher {
  const options = { ...connectionOptions(connectTimeoutMs), pipelining: 0 };
  if (proxy === undefined) return new Client(origin, options);
  return throughProxy(proxy, connectTimeoutMs, { ...options, connections: 1 });
}

/**
 * The exchange has time limits of its own. undici's for connecting stays, because it closes the socket of an attempt
 * that the exchange has given up; the others are off.
 */
function connectionOptions(connectTimeoutMs: number) {
  return { headersTimeout: 0, bodyTimeout: 0, connectTimeout: connectTimeoutMs };
}

/** A tunnel (CONNECT), so that the proxy sees neither key nor prompt. The request begins when TLS inside it is made. */
function throughProxy(proxy: Proxy, connectTimeoutMs: number, options: Pool.Options): Dispatcher {
  return new EnvHttpProxyAgent({
    ...options,
    httpsProxy: proxy.url,
    // An http base URL is one of this machine or a mistake; and nothing is read from the environment here.
    httpProxy: '',
    noProxy: proxy.noProxy ?? '',
    proxyTls: { timeout: connectTimeoutMs },
    requestTls: { timeout: connectTimeoutMs },
    clientFactory: (origin: URL, factoryOptions: object) =>
      proxyConnections(origin, { ...factoryOptions, headersTimeout: connectTimeoutMs }),
  });
}

/** The proxy kept us from connecting. Nothing was sent. */
class ProxyError extends Error {
  override readonly name = 'ProxyError';

  constructor(
    readonly code: 'PROXY_REFUSED' | 'PROXY_UNAVAILABLE',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * Connections to a proxy. Its errors get codes of their own: undici takes a proxy that hangs up for a lost connection to
 * the service, and asks for the tunnel again and again (7.30).
 */
function proxyConnections(proxy: URL, options: Pool.Options): Dispatcher {
  const pool = new Pool(proxy.origin, options);
  const connect = pool.connect.bind(pool);
  const tunnel = async (params: Parameters<typeof connect>[0]): Promise<Dispatcher.ConnectData> => {
    const answer = await connect(params).catch((cause: unknown) => {
      const why = describeFacts(errorFacts(cause));
      throw new ProxyError('PROXY_UNAVAILABLE', `no tunnel through the proxy ${proxy.host}: ${why}`, {
        cause,
      });
    });
    const { statusCode, socket } = answer;
    if (statusCode === 200) return answer;
    socket.on('error', () => undefined).destroy();
    const code = statusCode >= 400 && statusCode < 500 ? 'PROXY_REFUSED' : 'PROXY_UNAVAILABLE';
    throw new ProxyError(
      code,
      `the proxy ${proxy.host} answered CONNECT with ${statusCode}; check HTTPS_PROXY`,
    );
  };
  return Object.assign(pool, { connect: tunnel });
}
