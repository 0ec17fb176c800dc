import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger, NativeConnection } from '@temporalio/worker';
import type { AgentApi } from '../agent-api/client';
import type { JobAddress } from '../contract/activities';
import type { TemporalConfig } from '../temporal/connection-config';
import { connectionError } from '../temporal/server-error';
import { describeNamespace } from './connection';
import {
  throwOrExplainListenFailure,
  formatListenAddress,
  type ListenSetting,
  toNodeHost,
} from './variables';

/** Returns the reasons why the worker is not ready. The list is empty if the worker is ready. */
export type ReadinessCheck = () => Promise<readonly string[]>;

/** The timeouts of a request, in milliseconds. A probe is faster. Node enforces them every second instead of every 30 seconds. */
const LIMITS = { requestTimeout: 5_000, headersTimeout: 5_000, connectionsCheckingInterval: 1_000 };
const MAX_CONNECTIONS = 64;

/**
 * Serves `/healthz` (200 while the event loop runs) and `/readyz` (200 while the worker is ready, otherwise 503 with the reasons).
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
    await once(server.listen(listener.port, toNodeHost(listener)), 'listening');
  } catch (error) {
    logger.warn(
      `health checks are off: ${throwOrExplainListenFailure('FOLLOW_UP_HEALTH_ADDRESS', listener, error)}`,
    );
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

/**
 * The timeout of a check of the Temporal server, and the shortest time between two checks. However many probes arrive, at most one
 * check starts in this time.
 */
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

/** A job that does not exist. The agent service returns 404 for this job with a valid key, and 401 with an invalid key. */
const PROBE_JOB: JobAddress = { projectId: 'agent-follow-up-check', jobId: 'no-such-job' };

/** The shortest time between two checks of the key, because reads may count against the agent service's rate limit. */
const KEY_CHECK_INTERVAL_MS = 60_000;

/** Matches the labels of failures whose usual cause is a wrong key, URL, proxy or certificate. */
const SETTINGS_LABELS =
  /^(http_(401|3\d\d)|not_a_job|no_key|ENOTFOUND|PROXY_\w+|ERR_TLS_\w+|ERR_SSL_\w+|EPROTO|\w*CERT\w*|UNABLE_TO_\w+)$/;

/** Reports an invalid key or URL before the first follow-up. If the agent service is down, the worker stays ready. */
export function keyCheck(api: AgentApi, logger: Pick<Logger, 'warn'>): ReadinessCheck {
  let isKeyAccepted = false;
  return throttleCheck(async () => {
    if (isKeyAccepted) return [];
    const response = await api.getJob(PROBE_JOB);
    isKeyAccepted = response.kind === 'job' || response.httpStatus === 404;
    if (response.kind === 'job' || !SETTINGS_LABELS.test(response.label)) return [];
    const reason = `the agent service can't be used with these settings: ${response.message}`;
    logger.warn(reason);
    return [reason];
  }, KEY_CHECK_INTERVAL_MS);
}

/** Runs the check at most once per `intervalMs` milliseconds, and returns the last result in between. */
function throttleCheck(check: ReadinessCheck, intervalMs: number): ReadinessCheck {
  let last: { readonly until: number; readonly reasons: ReturnType<ReadinessCheck> } | undefined;
  return () => {
    const now = performance.now();
    if (last === undefined || now >= last.until) last = { until: now + intervalMs, reasons: check() };
    return last.reasons;
  };
}
