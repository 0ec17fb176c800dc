import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from '@temporalio/worker';
import type { ReadinessCheck } from './readiness';
import {
  ipv4Fallback,
  throwOrExplainListenFailure,
  formatListenAddress,
  type ListenSetting,
} from './variables';

/** The timeouts of a request, in milliseconds. A probe is faster. Node enforces them every second instead of every 30 seconds. */
const LIMITS = { requestTimeout: 5_000, headersTimeout: 5_000, connectionsCheckingInterval: 1_000 };
const MAX_CONNECTIONS = 64;

/** The paths and the responses of the health server. */
type Respond = (request: IncomingMessage) => Promise<[status: number, body: object]>;

/**
 * Serves `/healthz` (200 while the event loop runs) and `/readyz` (200 while the worker is ready, otherwise 503 with the reasons).
 * After the server has started to listen, none of its errors ends the process, because the process may have a POST in progress.
 *
 * @returns the server's address, which is undefined if the server does not listen, and a function that closes the server
 * @throws ConfigurationError if an operator set the address, and the process can't listen at it
 */
export async function startHealthServer(
  listener: ListenSetting,
  version: string,
  checkReadiness: ReadinessCheck,
  logger: Logger,
) {
  const none = { address: undefined, close: () => Promise.resolve() };
  if (listener === 'off') return none;
  const respond: Respond = async ({ url = '' }) => {
    const [path] = url.split('?', 1);
    if (path === '/healthz') return [200, { status: 'ok', version }];
    if (path !== '/readyz') return [404, { status: 'not found', paths: ['/healthz', '/readyz'] }];
    const reasons = await checkReadiness();
    return reasons.length === 0 ? [200, { status: 'ready' }] : [503, { status: 'not ready', reasons }];
  };
  const server = createServer(LIMITS, (request, response) => {
    void handleRequest(request, response, respond, logger);
  });
  server.maxConnections = MAX_CONNECTIONS;
  try {
    await listen(server, listener.host, listener.port);
  } catch (error) {
    logger.warn(
      `health checks are off: ${throwOrExplainListenFailure('FOLLOW_UP_HEALTH_ADDRESS', listener, error)}`,
    );
    return none;
  }
  // For example, a process without free file descriptors can't accept a connection (EMFILE).
  server.on('error', (error) => {
    logger.warn('the health server could not accept a connection', { error });
  });
  const { address, port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    const closed = once(server, 'close');
    server.close().closeAllConnections();
    await closed;
  };
  return { address: formatListenAddress({ host: address, port }), close };
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  try {
    await once(server.listen(port, host), 'listening');
  } catch (error) {
    const otherHost = ipv4Fallback(host, error);
    if (otherHost === undefined) throw error;
    await listen(server, otherHost, port);
  }
}

/** Responds to one request. Never rejects: a check that fails is a 500. */
async function handleRequest(
  request: IncomingMessage,
  response: ServerResponse,
  respond: Respond,
  logger: Logger,
): Promise<void> {
  const logFailure = (error: unknown) => {
    logger.warn('a health check failed', { error });
  };
  response.on('error', logFailure);
  try {
    const [status, body] = await respond(request).catch((error: unknown) => {
      logFailure(error);
      return [
        500,
        { status: 'error', reasons: ['the health check failed; see the log of the worker'] },
      ] as const;
    });
    response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
    response.end(`${JSON.stringify(body)}\n`);
  } catch (error) {
    logFailure(error);
    response.destroy();
  }
}
