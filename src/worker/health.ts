import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from '@temporalio/worker';
import { formatListenAddress, type Listener } from './variables';
import { ConfigurationError } from './config';

/** Probes are tiny; a request that takes longer is not a probe. */
const REQUEST_TIMEOUT_MS = 5_000;
/** More probes at once than any cluster sends. */
const MAX_CONNECTIONS = 64;

interface HealthServer {
  /** Where it listens, or null if it doesn't. */
  readonly address: string | null;
  close(): Promise<void>;
}

/**
 * Serves `/healthz` (200 while the event loop answers) and `/readyz` (200 while the worker works on follow-ups, otherwise
 * 503 with the reasons), for Kubernetes' probes and for people.
 *
 * @param notReady why the worker is not ready; empty when it is
 * @throws ConfigurationError when it can't listen at an address that was set. If a default address is taken, for example by
 *   a second worker on the host, that is a warning, and this process goes without.
 */
export async function startHealthServer(
  listener: Listener,
  version: string,
  notReady: () => Promise<readonly string[]>,
  logger: Logger,
): Promise<HealthServer> {
  if (listener === 'off') return { address: null, close: () => Promise.resolve() };
  const server = createServer(
    { requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS },
    (request, response) => {
      void answer(request, response, version, notReady);
    },
  );
  server.maxConnections = MAX_CONNECTIONS;
  try {
    await listen(server, listener.address.host, listener.address.port);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const problem = `FOLLOW_UP_HEALTH_ADDRESS: ${formatListenAddress(listener.address)} can't be used (${reason}); give another address or off`;
    if (listener.chosen) throw new ConfigurationError([problem]);
    logger.warn(`no health checks: ${problem}`);
    return { address: null, close: () => Promise.resolve() };
  }
  const { address, port } = server.address() as AddressInfo;
  return { address: formatListenAddress({ host: address, port }), close: () => close(server) };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  version: string,
  notReady: () => Promise<readonly string[]>,
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    reply(response, 405, { status: 'method not allowed' });
    return;
  }
  switch (request.url?.split('?', 1)[0]) {
    case '/healthz':
      reply(response, 200, { status: 'ok', version });
      return;
    case '/readyz': {
      const reasons = await notReady();
      if (reasons.length === 0) reply(response, 200, { status: 'ready' });
      else reply(response, 503, { status: 'not ready', reasons });
      return;
    }
    default:
      reply(response, 404, { status: 'not found', paths: ['/healthz', '/readyz'] });
  }
}

function reply(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(`${JSON.stringify(body)}\n`);
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => {
      resolve();
    });
    server.closeAllConnections();
  });
}
