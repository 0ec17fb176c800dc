import { AsyncLocalStorage } from 'node:async_hooks';
import { withGlobal } from '@sinonjs/fake-timers';

/** Who works at the moment: a process with its own idea of the time, which may stand still. */
export interface Process {
  /** Milliseconds by which its wall clock is ahead. */
  readonly clockErrorMs: number;
  /** Milliseconds that its monotonic clock has missed, as on a machine that was suspended. */
  readonly suspendedMs: number;
  /** Calls `work` now, when the process goes on, or never. */
  whenAwake(work: () => void): void;
}

/** A clock on which something can be due. */
export interface Timers {
  /** In milliseconds since the epoch. */
  readonly now: number;
  /** Calls `work` after so many milliseconds. @returns what takes it back */
  after(ms: number, work: () => void): () => void;
}

/** Real macrotasks: they are never faked, so that all microtasks have run when one comes. */
const realImmediate = setImmediate;

/** One for all: Node asks each of them about each promise, for ever. */
const processes = new AsyncLocalStorage<Process | undefined>();

const fakeTimers = withGlobal(globalThis);

/** Every simulation begins then, in milliseconds since the epoch. */
export const START_MS = Date.UTC(2030, 0, 1);

/**
 * The one clock of a simulation. It is the fake clock that jest uses too, and stands for `Date`, `performance` and the
 * timers of whatever runs in it. Nothing happens but what was due: the clock jumps from one timer to the next.
 */
export class VirtualClock implements Timers {
  private readonly clock = fakeTimers.install({
    now: START_MS,
    toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'],
  });
  private readonly setTimer = this.clock.setTimeout;
  /** Work under way that takes no virtual time, but real macrotasks: an activation of a workflow. */
  private busy = 0;

  private readonly realRandom = Math.random;

  /** @param random for whoever draws by `Math.random` */
  constructor(random: () => number) {
    const { clock } = this;
    Math.random = random;
    Date.now = () => clock.now + (processes.getStore()?.clockErrorMs ?? 0);
    performance.now = () => clock.now - START_MS - (processes.getStore()?.suspendedMs ?? 0);
    for (const name of ['setTimeout', 'setInterval'] as const) {
      const start = globalThis[name];
      const inContext = (work: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
        const process = processes.getStore();
        // A real timer keeps the context in which it was made.
        const run = AsyncLocalStorage.bind(() => work(...args));
        return start(process === undefined ? run : () => process.whenAwake(run), ms);
      };
      Object.assign(globalThis, { [name]: inContext });
    }
  }

  /** The true time, in milliseconds since the epoch. */
  get now(): number {
    return this.clock.now;
  }

  /** Runs `work` as this process does; its timers are the process's. */
  runAs<T>(process: Process, work: () => T): T {
    return processes.run(process, work);
  }

  /** Calls `work` after so many milliseconds, in nobody's name. @returns what takes it back */
  after(ms: number, work: () => void): () => void {
    const timer = processes.run(undefined, () => this.setTimer(work, Math.max(0, ms)));
    return () => this.clock.clearTimeout(timer);
  }

  async sleep(ms: number): Promise<void> {
    await new Promise<void>((resolve) => this.after(ms, resolve));
  }

  /** Marks work whose end the clock must not run ahead of. */
  during<T>(work: () => Promise<T>): Promise<T> {
    this.busy += 1;
    return work().finally(() => (this.busy -= 1));
  }

  /** Lets whatever is due happen, one after the other, until `isOver`, until nothing is left, or for so many steps. */
  async run(isOver: () => boolean, mostSteps: number): Promise<void> {
    for (let step = 0; step < mostSteps; step += 1) {
      do await new Promise<void>((resolve) => realImmediate(resolve));
      while (this.busy > 0);
      if (isOver() || this.clock.countTimers() === 0) return;
      this.clock.next();
    }
  }

  /** Gives the real clock back. What was due is dropped. */
  uninstall(): void {
    this.clock.uninstall();
    Math.random = this.realRandom;
  }
}
