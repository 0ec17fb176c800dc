import { checkRequest } from '../../src/core/check-request';
import type { Polling } from '../../src/core/request';
import { pollInterval, type Random } from '../../src/core/cadence';

/** How long a client waits from one look at a long-running job to the next. */
export interface Schedule {
  readonly name: string;
  /** Begins one turn. @returns the wait before the next poll of a turn of that age, both in milliseconds */
  begin(random: Random): (ageMs: number) => number;
}

/** The polling of a request that leaves every field to its default. */
export const DEFAULT_POLLING: Polling = defaultPolling();

export const OURS: Schedule = ageing('this project', DEFAULT_POLLING);

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

/** The defaults, and what one field alone would change: how the defaults were chosen. */
export const ALTERNATIVES: readonly { readonly changed: string; readonly polling: Polling }[] = [
  alternative('none', {}),
  alternative('initial 2s', { initialMs: 2_000 }),
  alternative('initial 10s', { initialMs: 10_000 }),
  alternative('growth 0.08', { growth: 0.08 }),
  alternative('growth 0.12', { growth: 0.12 }),
  alternative('maximum 2m', { maximumMs: 120_000 }),
  alternative('maximum 10m', { maximumMs: 600_000 }),
  alternative('jitter 0', { jitter: 0 }),
  alternative('jitter 0.2', { jitter: 0.2 }),
];

/** The schedule of this project, by its own function. */
export function ageing(name: string, polling: Polling): Schedule {
  return { name, begin: (random) => (ageMs) => pollInterval(polling, ageMs, random) };
}

function alternative(changed: string, polling: Partial<Polling>): { changed: string; polling: Polling } {
  return { changed, polling: { ...DEFAULT_POLLING, ...polling } };
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
