import { covers, type JobKey } from './jobs';

/** The requests that are held open until somebody releases them. */
export class Holds {
  private readonly held = new Set<{ readonly key: JobKey; readonly release: () => void }>();

  /** Waits until the request is released, or rejects when the signal says so. */
  async wait(key: JobKey, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const stop = (): void => {
        this.held.delete(entry);
        reject(signal.reason as Error);
      };
      const release = (): void => {
        this.held.delete(entry);
        signal.removeEventListener('abort', stop);
        resolve();
      };
      const entry = { key, release };
      this.held.add(entry);
      signal.addEventListener('abort', stop, { once: true });
    });
  }

  /** Releases what is held for a job, or with no key everything, and returns how many requests that were. */
  release(key?: JobKey): number {
    const chosen = [...this.held].filter((entry) => key === undefined || covers(key, entry.key));
    for (const { release } of chosen) release();
    return chosen.length;
  }
}
