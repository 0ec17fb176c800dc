import { setTimeout as sleep } from 'node:timers/promises';

export interface EventuallyOptions {
  /** @default 20000 */
  readonly timeoutMs?: number;
  /** From one try to the next. @default 50 */
  readonly intervalMs?: number;
}

/**
 * Waits until `check` has a value, and returns it. `false`, `null` and `undefined` mean "not yet".
 *
 * @param what what is waited for, in words for the error
 * @throws Error when there is none in time, with what `check` returned last
 */
export async function eventually<T>(
  what: string,
  check: () => T | false | null | undefined | Promise<T | false | null | undefined>,
  { timeoutMs = 20_000, intervalMs = 50 }: EventuallyOptions = {},
): Promise<T> {
  const giveUpAt = Date.now() + timeoutMs;
  for (;;) {
    const value = await check();
    if (value !== false && value !== null && value !== undefined) return value;
    if (Date.now() > giveUpAt) throw new Error(`${what}: not within ${timeoutMs} ms`);
    await sleep(intervalMs);
  }
}
