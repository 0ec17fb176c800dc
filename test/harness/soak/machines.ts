import { setTimeout as sleep } from 'node:timers/promises';
import type { ProcessEnvironment } from '../process-environment';
import type { RestartableServer } from '../restartable-server';
import type { WorkerProcess } from '../worker-process';

/** From one event to the next, in milliseconds. */
const MIN_PAUSE_MS = 2_500;
const MAX_PAUSE_MS = 8_000;

/** A restart of the server costs everybody some seconds. */
const MAX_RESTARTS = 2;

/**
 * Two workers and the server of a soak. Every few seconds until `stop` a worker is killed with SIGKILL or frozen, both are
 * gone for a while, or the server is killed and started again. In the end all of them work.
 */
export class Machines {
  readonly counts = { kill: 0, freeze: 0, restart: 0 };
  /** The last words of workers that ended and that nobody had killed. */
  readonly died: string[] = [];
  private readonly workers: WorkerProcess[] = [];
  private readonly killed = new Set<WorkerProcess>();

  constructor(
    private readonly environment: ProcessEnvironment,
    private readonly server: RestartableServer,
    private readonly random: () => number,
  ) {}

  async run(stop: AbortSignal): Promise<void> {
    await Promise.all([this.hire(0), this.hire(1)]);
    // Whatever chance brings, one is killed.
    await this.replace(0);
    for (;;) {
      const pauseMs = MIN_PAUSE_MS + this.random() * (MAX_PAUSE_MS - MIN_PAUSE_MS);
      const [event, place] = [this.random(), this.random() < 0.5 ? 0 : 1];
      const longMs = 2_000 + 8_000 * this.random();
      await sleep(pauseMs, undefined, { signal: stop }).catch(() => undefined);
      if (stop.aborted) break;
      if (event < 0.55) await this.replace(place);
      else if (event < 0.75) await this.freeze(place, longMs);
      else if (event < 0.85) await Promise.all([this.replace(0, longMs / 2), this.replace(1, longMs / 2)]);
      else if (this.counts.restart < MAX_RESTARTS) await this.restart();
    }
  }

  /** From now on a worker may end: the environment is closed. */
  dismiss(): void {
    for (const worker of this.workers) this.killed.add(worker);
  }

  /** A worker that ends by itself is replaced: what has ended it ends the next one as well, and is to be seen. */
  private async hire(place: number): Promise<void> {
    try {
      const worker = await this.environment.startWorker();
      this.workers[place] = worker;
      void worker.exited.then(({ code, signal }) => {
        if (this.killed.has(worker)) return;
        this.died.push(`${signal ?? `exit code ${code}`}: ${(worker.stderr || worker.stdout).slice(-1_500)}`);
        void this.hire(place);
      });
    } catch (error) {
      this.died.push(`did not start: ${String(error)}`);
    }
  }

  private async replace(place: number, absenceMs = 0): Promise<void> {
    const worker = this.workers[place];
    if (worker !== undefined) {
      this.killed.add(worker);
      worker.signal('SIGKILL');
      await worker.exited;
      this.counts.kill += 1;
    }
    await sleep(absenceMs);
    await this.hire(place);
  }

  private async freeze(place: number, forMs: number): Promise<void> {
    const worker = this.workers[place];
    worker?.signal('SIGSTOP');
    await sleep(forMs);
    worker?.signal('SIGCONT');
    this.counts.freeze += 1;
  }

  private async restart(): Promise<void> {
    await this.server.kill();
    await this.server.restart();
    this.counts.restart += 1;
  }
}
