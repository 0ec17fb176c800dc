import type { Client } from '@temporalio/client';
import { LRUCache } from 'lru-cache';

/**
 * The maximum size of one cache for one client. The item identities of the largest batch fit, because the results of a batch need all of
 * them.
 */
const MAX_CACHE_BYTES = 64 * 1_024 * 1_024;

/** A least-recently-used cache for values that a batch needs every few seconds. If a read fails, the next call reads again. */
export class RunCache<T> {
  private readonly caches = new WeakMap<Client, LRUCache<string, Promise<T>>>();

  /** @param run the key of the value @param bytes the approximate size of the value */
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
