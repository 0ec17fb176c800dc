import type { Client } from '@temporalio/client';
import { LRUCache } from 'lru-cache';

/** The maximum for one client. The names of every batch fit, because each attempt of its activity reads all of them. */
const MAX_CACHE_BYTES = 64 * 1_024 * 1_024;

/** Keeps values that a batch reads from the Temporal server every few seconds. A value that could not be read is not kept. */
export class RunCache<T> {
  private readonly caches = new WeakMap<Client, LRUCache<string, Promise<T>>>();

  get(client: Client, run: string, bytes: number, read: () => Promise<T>): Promise<T> {
    const cache = this.caches.get(client) ?? new LRUCache<string, Promise<T>>({ maxSize: MAX_CACHE_BYTES });
    this.caches.set(client, cache);
    const cachedValue = cache.get(run);
    if (cachedValue !== undefined) return cachedValue;
    const value = read();
    // The cache accepts only sizes from 1 to its maximum.
    cache.set(run, value, { size: Math.min(Math.max(bytes, 1), MAX_CACHE_BYTES) });
    value.catch(() => cache.delete(run));
    return value;
  }
}
