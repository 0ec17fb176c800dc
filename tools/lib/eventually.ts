import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

type Found<T> = Exclude<T, false | null | undefined>;
type LastCheck = { readonly value: unknown } | { readonly error: unknown };

interface EventuallyOptions<T> {
  /** The timeout in milliseconds, for tests of a timeout. @default no timeout: jest ends the test and prints the pending waits */
  readonly timeoutMs?: number;
  /** The time between two checks, in milliseconds. @default 50 */
  readonly intervalMs?: number;
  /** Whether a value ends the wait. @default every value except `false`, `null` and `undefined` */
  readonly until?: (value: Found<T>) => boolean;
}

interface Wait {
  readonly condition: string;
  last?: LastCheck;
}

/** The pending waits of this test file. */
const waits = new Set<Wait>();

/**
 * Ends all waits of this test file.
 *
 * @returns the description of each wait, with the result of its last check
 */
export function endPendingWaits(): string[] {
  const descriptions = [...waits].map(
    ({ condition, last }) => `- ${condition}${last === undefined ? '' : `: ${describeLastCheck(last)}`}`,
  );
  waits.clear();
  return descriptions;
}

/**
 * Repeats a check until it returns an accepted value, and returns this value. A check that throws is repeated, too.
 *
 * @param condition the description of the condition, such as "the follow-up is watching"
 * @throws Error after the timeout, with the result of the last check
 */
export async function eventually<T>(
  condition: string,
  check: () => T | Promise<T>,
  { timeoutMs = Infinity, intervalMs = 50, until = () => true }: EventuallyOptions<T> = {},
): Promise<Found<T>> {
  const timeoutAt = Date.now() + timeoutMs;
  const wait: Wait = { condition };
  waits.add(wait);
  try {
    for (;;) {
      let last: { value: T } | { error: unknown };
      try {
        last = { value: await check() };
      } catch (error) {
        last = { error };
      }
      if ('value' in last && isFound(last.value) && until(last.value)) return last.value;
      wait.last = last;
      if (!waits.has(wait) || Date.now() > timeoutAt)
        throw new Error(`timeout: "${condition}" did not become true; ${describeLastCheck(last)}`, {
          cause: 'error' in last ? last.error : undefined,
        });
      await sleep(intervalMs);
    }
  } finally {
    waits.delete(wait);
  }
}

function describeLastCheck(last: LastCheck): string {
  return 'value' in last
    ? `the last value was ${inspect(last.value, { depth: 5 })}`
    : `the last error was ${String(last.error)}`;
}

function isFound<T>(value: T): value is Found<T> {
  return value !== false && value !== null && value !== undefined;
}
