// eslint-disable-next-line no-restricted-syntax -- between two looks
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

type Found<T> = Exclude<T, false | null | undefined>;

interface EventuallyOptions<T> {
  /** @default 20000 */
  readonly timeoutMs?: number;
  /** From one check to the next. @default 50 */
  readonly intervalMs?: number;
  /** Whether an answer is what is waited for. @default any but `false`, `null` and `undefined` */
  readonly until?: (answer: Found<T>) => boolean;
}

/**
 * Checks again and again until the answer is what is waited for, and returns it. A check that throws has no answer yet.
 *
 * @param what what is waited for, in words: "the follow-up is watching"
 * @throws Error when it does not come in time, with the last answer or error
 */
export async function eventually<T>(
  what: string,
  check: () => T | Promise<T>,
  { timeoutMs = 20_000, intervalMs = 50, until = () => true }: EventuallyOptions<T> = {},
): Promise<Found<T>> {
  const giveUpAt = Date.now() + timeoutMs;
  for (;;) {
    let last: { answer: T } | { error: unknown };
    try {
      last = { answer: await check() };
    } catch (error) {
      last = { error };
    }
    if ('answer' in last && isFound(last.answer) && until(last.answer)) return last.answer;
    if (Date.now() > giveUpAt) {
      const answer = 'answer' in last ? `; the last answer was ${inspect(last.answer, { depth: 5 })}` : '';
      throw new Error(`${what}: not within ${timeoutMs} ms${answer}`, {
        cause: 'error' in last ? last.error : undefined,
      });
    }
    await sleep(intervalMs);
  }
}

function isFound<T>(answer: T): answer is Found<T> {
  return answer !== false && answer !== null && answer !== undefined;
}
