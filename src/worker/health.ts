import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger, NativeConnection } from '@temporalio/worker';
import type { AgentApi } from '../agent-api/client';
import type { JobAddress } from '../contract/activities';
import type { TemporalConfig } from '../temporal/connection-config';
import { connectionError } from '../temporal/server-error';
import { describeNamespace } from './connection';
import { explainListenFailure, formatListenAddress, type Listener } from './variables';

/** Why the worker does not work; empty when it does. */
export type ReadinessCheck = () => Promise<readonly string[]>;

/** A request that takes longer is not a probe. Looked at each second: by itself Node does it twice a minute. */
const LIMITS = { requestTimeout: 5_000, headersTimeout: 5_000, connectionsCheckingInterval: 1_000 };
const MAX_CONNECTIONS = 64;

/**
 * Serves `/healthz` (200 while the event loop runs) and `/readyz` (200 while the worker works, otherwise 503 with the reasons).
 *
 * @returns `address`: the address of the server; undefined if it does not listen
 * @throws ConfigurationError when it can't listen at an address that was chosen
 */
export async function startHealthServer(
  listener: Listener,
  version: string,
  checkReadiness: ReadinessCheck,
  logger: Logger,
) {
  const none = { address: undefined, close: () => Promise.resolve() };
  if (listener === 'off') return none;
  const respond = async ({ url = '' }: IncomingMessage): Promise<[status: number, body: object]> => {
    const [path] = url.split('?', 1);
    if (path === '/healthz') return [200, { status: 'ok', version }];
    if (path !== '/readyz') return [404, { status: 'not found', paths: ['/healthz', '/readyz'] }];
    const reasons = await checkReadiness();
    return reasons.length === 0 ? [200, { status: 'ready' }] : [503, { status: 'not ready', reasons }];
  };
  const server = createServer(LIMITS, (request, response) => {
    void respond(request).then(([status, body]) => {
      response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
      response.end(`${JSON.stringify(body)}\n`);
    });
  });
  server.maxConnections = MAX_CONNECTIONS;
  try {
    await once(server.listen(listener.port, listener.host), 'listening');
  } catch (error) {
    logger.warn(`no health checks: ${explainListenFailure('FOLLOW_UP_HEALTH_ADDRESS', listener, error)}`);
    return none;
  }
  const { address, port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    const closed = once(server, 'close');
    server.close().closeAllConnections();
    await closed;
  };
  return { address: formatListenAddress({ host: address, port }), close };
}

/** A server that takes longer is too slow to work with. However many probes come, it is asked once in this time. */
const SERVER_CHECK_TIMEOUT_MS = 2_000;

export function connectionCheck(connection: NativeConnection, temporal: TemporalConfig): ReadinessCheck {
  return throttleCheck(async () => {
    try {
      await describeNamespace(connection, temporal.namespace, SERVER_CHECK_TIMEOUT_MS);
      return [];
    } catch (error) {
      return [connectionError(error, temporal).message];
    }
  }, SERVER_CHECK_TIMEOUT_MS);
}

/** A job that does not exist: the agent service returns 404 for a valid key, and 401 for an invalid one. */
const PROBE_JOB: JobAddress = { projectId: 'agent-follow-up-check', jobId: 'no-such-job' };

/** Reads may count against the agent service's rate limit. */
const KEY_CHECK_INTERVAL_MS = 60_000;

/** Labels of failures that only another key, URL, proxy or certificate fixes. */
const CONFIGURATION_FAILURE =
  /^(http_(401|3\d\d)|not_a_job|no_key|ENOTFOUND|PROXY_\w+|ERR_TLS_\w+|ERR_SSL_\w+|EPROTO|\w*CERT\w*|UNABLE_TO_\w+)$/;

/** Reports an invalid key or URL before the first follow-up. If the agent service is down, the worker stays ready. */
export function keyCheck(api: AgentApi, logger: Pick<Logger, 'warn'>): ReadinessCheck {
  let isKeyAccepted = false;
  return throttleCheck(async () => {
    if (isKeyAccepted) return [];
    const response = await api.getJob(PROBE_JOB);
    isKeyAccepted = response.kind === 'job' || response.httpStatus === 404;
    if (response.kind === 'job' || !CONFIGURATION_FAILURE.test(response.label)) return [];
    const reason = `the agent service can't be used with these settings: ${response.message}`;
    logger.warn(reason);
    return [reason];
  }, KEY_CHECK_INTERVAL_MS);
}

/** Asks at most once in `holdsMs` milliseconds, and gives the last answer in between. */
function throttleCheck(check: ReadinessCheck, intervalMs: number): ReadinessCheck {
  let last: { readonly until: number; readonly answer: ReturnType<ReadinessCheck> } | undefined;
  return () => {
    const now = performance.now();
    if (last === undefined || now >= last.until) last = { until: now + intervalMs, answer: check() };
    return last.answer;
  };
}
