import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

type Found<T> = Exclude<T, false | null | undefined>;
type LastCheck = { readonly answer: unknown } | { readonly error: unknown };

interface EventuallyOptions<T> {
  /** Only where giving up is part of what is tested. @default for ever: jest ends the test, and tells what it waits for */
  readonly timeoutMs?: number;
  /** From one check to the next. @default 50 */
  readonly intervalMs?: number;
  /** Whether an answer is what is waited for. @default any but `false`, `null` and `undefined` */
  readonly until?: (answer: Found<T>) => boolean;
}

interface Wait {
  readonly what: string;
  last?: LastCheck;
}

/** What is waited for in this test file. */
const waits = new Set<Wait>();

/**
 * Ends all waits of this test file.
 *
 * @returns what each waits for, with its last answer
 */
export function endPendingWaits(): string[] {
  const descriptions = [...waits].map(
    ({ what, last }) => `- ${what}${last === undefined ? '' : `: ${describeLastCheck(last)}`}`,
  );
  waits.clear();
  return descriptions;
}

/**
 * Checks again and again until the answer is what is waited for, and returns it. A check that throws has no answer yet.
 *
 * @param what what is waited for, in words: "the follow-up is watching"
 */
export async function eventually<T>(
  what: string,
  check: () => T | Promise<T>,
  { timeoutMs = Infinity, intervalMs = 50, until = () => true }: EventuallyOptions<T> = {},
): Promise<Found<T>> {
  const timeoutAt = Date.now() + timeoutMs;
  const wait: Wait = { what };
  waits.add(wait);
  try {
    for (;;) {
      let last: { answer: T } | { error: unknown };
      try {
        last = { answer: await check() };
      } catch (error) {
        last = { error };
      }
      if ('answer' in last && isFound(last.answer) && until(last.answer)) return last.answer;
      wait.last = last;
      if (!waits.has(wait) || Date.now() > timeoutAt)
        throw new Error(`${what}: it did not come; ${describeLastCheck(last)}`, {
          cause: 'error' in last ? last.error : undefined,
        });
      await sleep(intervalMs);
    }
  } finally {
    waits.delete(wait);
  }
}

function describeLastCheck(last: LastCheck): string {
  return 'answer' in last
    ? `the last answer was ${inspect(last.answer, { depth: 5 })}`
    : `the last error was ${String(last.error)}`;
}

function isFound<T>(answer: T): answer is Found<T> {
  return answer !== false && answer !== null && answer !== undefined;
}
