import type { Logger, NativeConnection } from '@temporalio/worker';
import type { AgentApi } from '../agent-api/client';
import { TLS_CODE } from '../contract/metrics';
import type { JobAddress } from '../contract/activities';
import type { TemporalConfig } from '../temporal/connection-config';
import { connectionError } from '../temporal/server-error';
import { describeNamespace } from './connection';

/** Returns the reasons why the worker is not ready. The list is empty if the worker is ready. */
export type ReadinessCheck = () => Promise<readonly string[]>;

/**
 * The maximum time for which a health response waits for a running check. A health response must come within one second, however
 * long a Temporal server or an agent service takes, because a probe without a response counts as failed.
 */
const MAX_WAIT_MS = 500;

interface BackgroundCheckOptions {
  /** The shortest time between the starts of two checks, however many probes arrive. */
  readonly intervalMs: number;
  /** The reasons until the first check has ended. */
  readonly initialReasons: readonly string[];
}

/**
 * Runs a check in the background. Each call starts the check if `intervalMs` has passed since the last start. If the check takes
 * more than {@link MAX_WAIT_MS}, the call returns the reasons of the previous check.
 *
 * @param check a check that ends in a limited time. A check that rejects is a reason too.
 */
export function runInBackground(
  check: ReadinessCheck,
  { intervalMs, initialReasons }: BackgroundCheckOptions,
): ReadinessCheck {
  let reasons = initialReasons;
  let running: Promise<void> | undefined;
  let nextStartAt = -Infinity;
  const run = async () => {
    try {
      reasons = await check();
    } catch (error) {
      reasons = [`a readiness check failed: ${String(error)}`];
    }
  };
  return async () => {
    const now = performance.now();
    if (running === undefined && now >= nextStartAt) {
      nextStartAt = now + intervalMs;
      running = run().finally(() => (running = undefined));
    }
    if (running !== undefined) await Promise.race([running, wait(MAX_WAIT_MS)]);
    return reasons;
  };
}

/** Runs checks at the same time, so that their waits do not add up. @returns the reasons of all checks, in the order of the checks */
export function runTogether(...checks: readonly ReadinessCheck[]): ReadinessCheck {
  return async () => (await Promise.all(checks.map((check) => check()))).flat();
}

/** Waits without keeping the process alive. */
function wait(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}

/** The timeout of a check of the Temporal server, and the shortest time between two checks. */
const SERVER_CHECK_TIMEOUT_MS = 2_000;

/** Checks that the Temporal server responds. The first result is known, because the worker has just connected. */
export function connectionCheck(connection: NativeConnection, temporal: TemporalConfig): ReadinessCheck {
  const check = async () => {
    try {
      await describeNamespace(connection, temporal.namespace, SERVER_CHECK_TIMEOUT_MS);
      return [];
    } catch (error) {
      return [connectionError(error, temporal).message];
    }
  };
  return runInBackground(check, { intervalMs: SERVER_CHECK_TIMEOUT_MS, initialReasons: [] });
}

/** A job that does not exist. The agent service returns 404 for this job with a valid key, and 401 with an invalid key. */
const PROBE_JOB: JobAddress = { projectId: 'agent-follow-up-check', jobId: 'no-such-job' };

/** The shortest time between two checks of the key, because reads may count against the agent service's rate limit. */
const KEY_CHECK_INTERVAL_MS = 60_000;

/**
 * The timeout of the key's check. Until the first check has ended, the worker is not ready, because its key may be wrong. An
 * agent service that does not respond therefore delays a rollout for this time at most.
 */
const KEY_CHECK_TIMEOUT_MS = 10_000;

/** Matches the labels of failures whose usual cause is a wrong key, URL, proxy or certificate. */
const SETTINGS_LABELS = RegExp(
  `^(http_(401|3\\d\\d)|not_a_job|no_key|ENOTFOUND|PROXY_\\w+)$|${TLS_CODE.source}`,
);

/** Reports an invalid key or URL before the first follow-up. While the agent service is down, the worker is ready. */
export function keyCheck(api: AgentApi, logger: Pick<Logger, 'warn'>): ReadinessCheck {
  const timeoutMs = Math.min(api.timeoutMs, KEY_CHECK_TIMEOUT_MS);
  let isKeyAccepted = false;
  const check = async () => {
    if (isKeyAccepted) return [];
    const response = await api.getJob(PROBE_JOB, { timeoutMs });
    isKeyAccepted = response.kind === 'job' || response.httpStatus === 404;
    if (response.kind === 'job') return [];
    if (!SETTINGS_LABELS.test(response.label)) {
      // The reads of a worker that shuts down end with UND_ERR_DESTROYED.
      const hasResponded = response.httpStatus !== undefined || response.gatewayStatus !== undefined;
      if (!hasResponded && response.label !== 'UND_ERR_DESTROYED')
        logger.warn(
          `the agent service does not respond (${response.message}); if this continues, check AGENT_API_BASE_URL`,
        );
      return [];
    }
    const reason = `the agent service can't be used with these settings: ${response.message}`;
    logger.warn(reason);
    return [reason];
  };
  const initialReasons = ['the first check of the API key has not ended'];
  return runInBackground(check, { intervalMs: KEY_CHECK_INTERVAL_MS, initialReasons });
}
