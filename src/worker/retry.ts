import { setTimeout as sleep } from 'node:timers/promises';

/** The first wait after a failed attempt. A server that is just starting needs a second or two. */
const FIRST_WAIT_MS = 1_000;
/** The longest wait: a server that comes back is noticed within ten seconds, and the log stays readable. */
const LONGEST_WAIT_MS = 10_000;

/** An attempt that takes longer is mentioned, because whoever reads the log would wonder. */
const SILENCE_MS = 10_000;

/** Why an attempt failed, in words, and whether waiting can heal it. */
export interface Trouble {
  readonly message: string;
  readonly heals: boolean;
}

/** Thrown for trouble that no waiting heals. */
export class HopelessError extends Error {
  override readonly name = 'HopelessError';
}

export interface Waiting {
  /** Ends the wait. */
  readonly signal: AbortSignal;
  /** Says why an attempt failed. */
  readonly explain: (error: unknown) => Trouble;
  /** Called after each failed attempt, and, with no next one, while an attempt stays without an answer. */
  readonly onTrouble: (message: string, nextTryMs: number | null) => void;
}

/**
 * Makes an attempt again and again until it succeeds, for ever where waiting can help: the waits grow from one second
 * to ten.
 *
 * @throws HopelessError when waiting can't heal it, and the signal's reason when it is aborted
 */
export async function untilItWorks<T>(attempt: () => Promise<T>, waiting: Waiting): Promise<T> {
  for (let failed = 1; ; failed++) {
    waiting.signal.throwIfAborted();
    try {
      return await watched(attempt(), waiting);
    } catch (error) {
      waiting.signal.throwIfAborted();
      const trouble = waiting.explain(error);
      if (!trouble.heals) throw new HopelessError(trouble.message, { cause: error });
      waiting.onTrouble(trouble.message, waitAfterMs(failed));
    }
    // Aborted, it rejects with an AbortError; the next round throws the signal's own reason.
    await sleep(waitAfterMs(failed), undefined, { signal: waiting.signal }).catch(() => undefined);
  }
}

/** The wait after so many failed attempts: 1, 2, 4, 8, 10, 10, … seconds. */
export function waitAfterMs(failed: number): number {
  return Math.min(FIRST_WAIT_MS * 2 ** (failed - 1), LONGEST_WAIT_MS);
}

/** The result of `attempt`, with a word about it while it takes long. */
async function watched<T>(attempt: Promise<T>, { signal, onTrouble }: Waiting): Promise<T> {
  const notice = setInterval(() => {
    onTrouble('no answer yet', null);
  }, SILENCE_MS);
  let stop: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => {
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([attempt, aborted]);
  } finally {
    clearInterval(notice);
    signal.removeEventListener('abort', stop);
    // An attempt that lost against the abort may still fail later; nobody waits for it any more.
    attempt.catch(() => undefined);
  }
}
