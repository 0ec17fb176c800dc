/** Half a minute: long enough to tell it from a default, short enough to wait for in a rehearsal. */
const DATE_DISTANCE_MS = 30_000;

const HEADERS: Readonly<Record<string, (now: number) => string | null>> = {
  none: () => null,
  date: (now) => new Date(now + DATE_DISTANCE_MS).toUTCString(),
  past: (now) => new Date(now - DATE_DISTANCE_MS).toUTCString(),
  negative: () => '-5',
  absurd: () => '999999999',
  garbage: () => 'soon',
};

/** The words that stand for a kind of `Retry-After` header; any other text is sent as it is. */
export const RETRY_AFTER_WORDS = Object.keys(HEADERS);

export function retryAfterHeader(text: string, now: number): Record<string, string> {
  const header = Object.hasOwn(HEADERS, text) ? HEADERS[text]?.(now) : text;
  return header === null || header === undefined ? {} : { 'retry-after': header };
}
