import { checkRequest } from '../../src/core/check-request';
import type { Polling } from '../../src/core/request';
import { pollInterval, type Random } from '../../src/core/cadence';

/** How long a client waits from one look at a long-running job to the next. */
export interface Schedule {
  readonly name: string;
  /** Begins one turn. @returns the wait before the next poll of a turn of that age, both in milliseconds */
  begin(random: Random): (ageMs: number) => number;
}

/** The schedule of a request that leaves every field to its default, by the worker's own function. */
export const OURS: Schedule = ageing('this project', defaultPolling());

/**
 * The schedules that clients of other long-running operations ship as their defaults.
 *
 * - core-lro: `POLL_INTERVAL_IN_MS` of Azure/azure-sdk-for-js, sdk/core/core-lro.
 * - gax: the default back-off settings of googleapis/gax-nodejs.
 * - Google LRO: `google.api.MethodSettings.LongRunning` of googleapis, google/api/client.proto; the client library
 *   generators take their defaults from there.
 */
export const OTHERS: readonly Schedule[] = [
  fixed('core-lro', 2_000),
  exponential('gax', 100, 1.3, 60_000),
  exponential('Google LRO', 5_000, 1.5, 45_000),
  fixed('a minute', 60_000),
];

function ageing(name: string, polling: Polling): Schedule {
  return { name, begin: (random) => (ageMs) => pollInterval(polling, ageMs, random) };
}

function fixed(name: string, everyMs: number): Schedule {
  return { name, begin: () => () => everyMs };
}

function exponential(name: string, initialMs: number, factor: number, maximumMs: number): Schedule {
  return {
    name,
    begin: () => {
      let nextMs = initialMs;
      return () => {
        const waitMs = nextMs;
        nextMs = Math.min(nextMs * factor, maximumMs);
        return waitMs;
      };
    },
  };
}

function defaultPolling(): Polling {
  const checked = checkRequest({ projectId: 'project', jobId: 'job', prompt: 'prompt', requestId: 'name' });
  if (!checked.ok) throw new TypeError(checked.problems.map(({ text }) => text).join('; '));
  return checked.plan.polling;
}
