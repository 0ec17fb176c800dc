import type { Logger, NativeConnection } from '@temporalio/worker';
import { SearchAttributesError, ensureSearchAttributes } from '../client/search-attributes';
import { formatDuration } from '../contract/duration';
import { ConfigurationError } from './configuration-error';
import { explainTrouble } from './connection-trouble';
import { describeNamespace } from './namespace';
import { type Trouble, untilItWorks } from './retry';
import type { SdkRuntime } from './runtime';
import type { Readiness } from './readiness';
import type { TemporalConfig } from '../client/temporal-config';

/** A server that has just answered knows its namespaces within this time, or is overloaded. */
const NAMESPACE_LIMIT_MS = 10_000;

export interface Waiters {
  readonly stop: AbortSignal;
  readonly readiness: Readiness;
  readonly logger: Logger;
}

/**
 * A connection to a Temporal server that has the namespace and the search attributes. Whatever of these is not there
 * yet is waited for, for ever, with a message each time: containers start in any order. Workers must not start before
 * the attributes exist, because a missing one stalls every workflow in silence; an operator can add them meanwhile.
 *
 * @throws HopelessError for what waiting can't heal, and the reason of `stop` when it is aborted
 */
export async function connectToTemporal(
  config: TemporalConfig,
  runtime: SdkRuntime,
  { stop, readiness, logger }: Waiters,
): Promise<NativeConnection> {
  const { address, namespace } = config;
  const until = <T>(attempt: () => Promise<T>, explain: (error: unknown) => Trouble): Promise<T> =>
    untilItWorks(attempt, {
      signal: stop,
      explain,
      onTrouble: (message, nextTryMs) => {
        readiness.notReady(message);
        const next = nextTryMs === null ? 'still waiting' : `next try in ${formatDuration(nextTryMs)}`;
        logger.warn(`waiting for Temporal: ${message}; ${next}`);
      },
    });
  const explain = (error: unknown): Trouble => {
    // Another process has taken the metrics port since the last attempt.
    if (error instanceof ConfigurationError) throw error;
    return explainTrouble(error, config);
  };

  readiness.notReady(`connecting to Temporal at ${address}`);
  const connection = await until(() => runtime.connect(config.connection), explain);
  await until(() => describeNamespace(connection, namespace, NAMESPACE_LIMIT_MS), explain);
  const { registered } = await until(
    () => ensureSearchAttributes(connection, namespace),
    (error) =>
      error instanceof SearchAttributesError ? { message: error.message, heals: true } : explain(error),
  );
  if (registered.length > 0)
    logger.info(`search attributes registered: ${registered.join(', ')}`, { namespace });
  return connection;
}
