import { setTimeout as sleep } from 'node:timers/promises';
import { Operator } from '../operator';
import type { ProcessEnvironment } from '../process-environment';
import type { WorkerProcess } from '../worker-process';
import { type RestartableServer, throughRestarts } from '../restartable-server';

/** From one event to the next, in milliseconds. */
const MIN_PAUSE_MS = 2_500;
const MAX_PAUSE_MS = 8_000;

/** A restart of the server costs everybody some seconds. */
const MAX_RESTARTS = 2;

/** While the limit holds. As many start, so that some of them wait for as long as it holds. */
const TASKS_PER_SECOND = 2;

/**
 * Two workers and the server of a soak, to which something happens every few seconds, by chance, until `stop`: a worker
 * is killed with SIGKILL (the first of all) or frozen, both are gone for a while, the queue of sends or reads gets a limit for a while, or the
 * server is killed and started again. In the end all of them work.
 */
export class Machines {
  readonly log = {
    counts: { kill: 0, freeze: 0, absence: 0, limit: 0, restart: 0 },
    /** The last words of workers that ended and that nobody had killed. */
    died: [] as string[],
  };
  private readonly workers: WorkerProcess[] = [];
  private readonly killed = new Set<WorkerProcess>();
  private readonly operator: Operator;

  constructor(
    private readonly environment: ProcessEnvironment,
    private readonly server: RestartableServer,
    private readonly random: () => number,
  ) {
    this.operator = new Operator(environment.client);
  }

  async run(stop: AbortSignal): Promise<void> {
    await Promise.all([this.hire(0), this.hire(1)]);
    // Whatever chance brings.
    await this.replace(0);
    for (;;) {
      const pauseMs = MIN_PAUSE_MS + this.random() * (MAX_PAUSE_MS - MIN_PAUSE_MS);
      const event = this.random();
      const place = this.random() < 0.5 ? 0 : 1;
      const longMs = 2_000 + 8_000 * this.random();
      await sleep(pauseMs, undefined, { signal: stop }).catch(() => undefined);
      if (stop.aborted) break;
      if (event < 0.5) await this.replace(place);
      else if (event < 0.65) await this.freeze(place, longMs);
      else if (event < 0.72) await this.absence(longMs / 2);
      else if (event < 0.85) await this.limit(longMs);
      else await this.restart();
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
        const words = (worker.stderr || worker.stdout).slice(-1_500);
        this.log.died.push(`${signal ?? `exit code ${code}`}: ${words}`);
        void this.hire(place);
      });
    } catch (error) {
      this.log.died.push(`did not start: ${String(error)}`);
    }
  }

  private async kill(place: number): Promise<void> {
    const worker = this.workers[place];
    if (worker === undefined) return;
    this.killed.add(worker);
    worker.signal('SIGKILL');
    await worker.exited;
    this.log.counts.kill += 1;
  }

  private async replace(place: number): Promise<void> {
    await this.kill(place);
    await this.hire(place);
  }

  private async freeze(place: number, forMs: number): Promise<void> {
    const worker = this.workers[place];
    worker?.signal('SIGSTOP');
    await sleep(forMs);
    worker?.signal('SIGCONT');
    this.log.counts.freeze += 1;
  }

  /** No worker at all: everything waits in its queue. */
  private async absence(forMs: number): Promise<void> {
    await Promise.all([this.kill(0), this.kill(1)]);
    await sleep(forMs);
    await Promise.all([this.hire(0), this.hire(1)]);
    this.log.counts.absence += 1;
  }

  /** As `limits set` and `limits clear` do, on sends or on reads. */
  private async limit(forMs: number): Promise<void> {
    const { send, read } = this.environment.taskQueues;
    const queue = this.random() < 0.5 ? send : read;
    await throughRestarts(() => this.operator.limit(queue, TASKS_PER_SECOND));
    await sleep(2 * forMs);
    await throughRestarts(() => this.operator.limit(queue, null));
    this.log.counts.limit += 1;
  }

  private async restart(): Promise<void> {
    if (this.log.counts.restart >= MAX_RESTARTS) return;
    await this.server.kill();
    await this.server.restart();
    this.log.counts.restart += 1;
  }
}
