import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultSetting } from '../../../src/sandbox';
import type { ProcessHouse } from '../../harness/process-house';
import type { WorkerProcess } from '../../harness/worker-process';

/** What the service does to messages: about every third one meets something. */
const ON_MESSAGES: readonly FaultSetting[] = [
  { name: 'http-429', chance: 0.06 },
  { name: 'slow', chance: 0.05, parameters: { delay: '700ms' } },
  { name: 'close-before-read', chance: 0.02 },
  { name: 'close-after-read', chance: 0.02 },
  { name: 'reset', chance: 0.02 },
  { name: 'hang', chance: 0.02 },
  { name: 'http-503', chance: 0.03 },
  { name: 'redirect', chance: 0.02 },
  { name: 'processed-then-close', chance: 0.03 },
  { name: 'processed-then-reset', chance: 0.03 },
  { name: 'processed-then-500', chance: 0.03 },
  { name: 'processed-then-503', chance: 0.02, parameters: { retryAfter: 1 } },
  { name: 'processed-then-timeout', chance: 0.03 },
  { name: 'html', chance: 0.02, parameters: { processed: 'yes' } },
  { name: 'truncated', chance: 0.02 },
  { name: 'stale', chance: 0.2, parameters: { for: '3s' } },
];

/** What it does to reads; a replica lags for less than `confirm`, as docs/guarantees.md asks for. */
const ON_READS: readonly FaultSetting[] = [
  { name: 'stale', chance: 0.4, parameters: { for: '3s' } },
  { name: 'http-503', chance: 0.03 },
  { name: 'http-429', chance: 0.02 },
  { name: 'hang', chance: 0.01 },
  { name: 'reset', chance: 0.02 },
  { name: 'not-found', chance: 0.01 },
  { name: 'html', chance: 0.01 },
  { name: 'slow', chance: 0.03, parameters: { delay: '500ms' } },
];

export const FAULTS: readonly FaultSetting[] = [
  ...ON_MESSAGES.map((fault) => ({ ...fault, operation: 'message' as const })),
  ...ON_READS.map((fault) => ({ ...fault, operation: 'get' as const })),
];

/** From one kill to the next, in milliseconds. */
const MIN_PAUSE_MS = 2_000;
const MAX_PAUSE_MS = 6_000;

/**
 * Kills one of two workers with SIGKILL every few seconds, by chance, and starts another in its place, until `stop`.
 *
 * @returns how many were killed
 */
export async function killWorkers(
  house: ProcessHouse,
  random: () => number,
  stop: AbortSignal,
): Promise<number> {
  const workers: WorkerProcess[] = await Promise.all([house.startWorker(), house.startWorker()]);
  let kills = 0;
  for (;;) {
    const pauseMs = MIN_PAUSE_MS + random() * (MAX_PAUSE_MS - MIN_PAUSE_MS);
    const place = random() < 0.5 ? 0 : 1;
    await sleep(pauseMs, undefined, { signal: stop }).catch(() => undefined);
    if (stop.aborted) return kills;
    workers[place]?.signal('SIGKILL');
    await workers[place]?.exited;
    kills += 1;
    workers[place] = await house.startWorker();
  }
}
