import { AsyncLocalStorage } from 'node:async_hooks';
import { withGlobal } from '@sinonjs/fake-timers';

/** A simulated process, whose clocks may be wrong and which may be frozen. */
export interface Process {
  /** The number of milliseconds by which the wall clock of the process is ahead. */
  readonly clockErrorMs: number;
  /** The number of milliseconds that the monotonic clock of the process missed while its machine was suspended. */
  readonly suspendedMs: number;
  /** Calls `work` now; if the process is frozen, when the process continues; never if the process has died. */
  whenAwake(work: () => void): void;
}

/** A clock with timers. */
export interface Timers {
  /** In milliseconds since the epoch. */
  readonly now: number;
  /** Calls `work` after `ms` milliseconds. @returns a function that cancels the call */
  after(ms: number, work: () => void): () => void;
}

/** The real function, which is never faked: when a macrotask runs, all microtasks before it have run. */
const realImmediate = setImmediate;

/** The process whose code is running. All clocks share this storage, because each `AsyncLocalStorage` slows down every promise. */
const processes = new AsyncLocalStorage<Process | undefined>();

const fakeTimers = withGlobal(globalThis);

/** The time at which every simulation begins, in milliseconds since the epoch. */
export const START_MS = Date.UTC(2030, 0, 1);

/**
 * The only clock of a simulation, built with the library of Jest's fake timers. The clock replaces `Date`, `performance` and the timers of
 * all code in the simulation. Its time jumps from one timer to the next.
 */
export class VirtualClock implements Timers {
  private readonly clock = fakeTimers.install({
    now: START_MS,
    toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'],
  });
  private readonly setTimer = this.clock.setTimeout;
  /** The number of workflow activations in progress: they take real macrotasks, but no virtual time. */
  private busy = 0;

  private readonly realRandom = Math.random;

  /** @param random replaces `Math.random` */
  constructor(random: () => number) {
    const { clock } = this;
    Math.random = random;
    Date.now = () => clock.now + (processes.getStore()?.clockErrorMs ?? 0);
    performance.now = () => clock.now - START_MS - (processes.getStore()?.suspendedMs ?? 0);
    for (const name of ['setTimeout', 'setInterval'] as const) {
      const start = globalThis[name];
      const inContext = (work: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
        const process = processes.getStore();
        // Like a real timer, this timer runs in the asynchronous context that created it.
        const run = AsyncLocalStorage.bind(() => work(...args));
        return start(process === undefined ? run : () => process.whenAwake(run), ms);
      };
      Object.assign(globalThis, { [name]: inContext });
    }
  }

  /** The correct time, in milliseconds since the epoch. */
  get now(): number {
    return this.clock.now;
  }

  /** Runs `work` in a process. The timers that `work` starts belong to the process. */
  runAs<T>(process: Process, work: () => T): T {
    return processes.run(process, work);
  }

  /** Calls `work` after `ms` milliseconds, outside of all processes. @returns a function that cancels the call */
  after(ms: number, work: () => void): () => void {
    const timer = processes.run(undefined, () => this.setTimer(work, Math.max(0, ms)));
    return () => this.clock.clearTimeout(timer);
  }

  async sleep(ms: number): Promise<void> {
    await new Promise<void>((resolve) => this.after(ms, resolve));
  }

  /** Runs `work`. The time does not advance until `work` has ended. */
  during<T>(work: () => Promise<T>): Promise<T> {
    this.busy += 1;
    return work().finally(() => (this.busy -= 1));
  }

  /** Runs the timers in the order of their times, until `isOver` returns true, no timer is left, or `mostSteps` timers have run. */
  async run(isOver: () => boolean, mostSteps: number): Promise<void> {
    for (let step = 0; step < mostSteps; step += 1) {
      do await new Promise<void>((resolve) => realImmediate(resolve));
      while (this.busy > 0);
      if (isOver() || this.clock.countTimers() === 0) return;
      this.clock.next();
    }
  }

  /** Restores the real clock. Timers that have not run are dropped. */
  uninstall(): void {
    this.clock.uninstall();
    Math.random = this.realRandom;
  }
}
