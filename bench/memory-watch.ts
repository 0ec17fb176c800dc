import { setTimeout as sleep } from 'node:timers/promises';
import { residentBytes } from './process-usage';

export interface MemorySample {
  /** Since the watch began. */
  readonly second: number;
  readonly phase: string;
  readonly workerRssMib: number;
  readonly serverRssMib: number;
  readonly cachedWorkflows: number;
  /** Workflows that were put out of the cache since the worker's start. */
  readonly evictions: number;
}

const MIB = 2 ** 20;
const SAMPLE_EVERY_MS = 5_000;

/** Looks at the memory of worker and server, and into the worker's cache of workflows, every five seconds. */
export class MemoryWatch {
  readonly samples: MemorySample[] = [];
  phase = '';
  private readonly beganAt = performance.now();
  private readonly stopping = new AbortController();
  private readonly sampling: Promise<void>;

  /** @param workerMetrics host and port where the worker serves its metrics */
  constructor(
    private readonly workerPid: number,
    private readonly workerMetrics: string,
    private readonly serverPid: number,
  ) {
    this.sampling = this.sampleUntilStopped();
    // Whoever stops the watch hears of it.
    this.sampling.catch(() => undefined);
  }

  seconds(): number {
    return (performance.now() - this.beganAt) / 1_000;
  }

  /** Takes a last sample, and ends. @throws Error when a sample could not be taken */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.sampling;
    this.samples.push(await this.sample());
  }

  /** What the last sample of a phase was. */
  lastOf(phase: string): MemorySample {
    const last = this.samples.findLast((sample) => sample.phase === phase);
    if (last === undefined) throw new Error(`nothing was sampled while ${phase}`);
    return last;
  }

  private async sampleUntilStopped(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      this.samples.push(await this.sample());
      await sleep(SAMPLE_EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  private async sample(): Promise<MemorySample> {
    const metrics = await (await fetch(`http://${this.workerMetrics}/metrics`)).text();
    return {
      second: this.seconds(),
      phase: this.phase,
      workerRssMib: (await residentBytes(this.workerPid)) / MIB,
      serverRssMib: (await residentBytes(this.serverPid)) / MIB,
      cachedWorkflows: sumOf(metrics, 'temporal_sticky_cache_size'),
      evictions: sumOf(metrics, 'temporal_sticky_cache_total_forced_eviction'),
    };
  }
}

/** The sum of a metric over its labels, in the text format of Prometheus. */
function sumOf(metrics: string, name: string): number {
  const lines = metrics.split('\n').filter((line) => line.startsWith(`${name}{`));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}
