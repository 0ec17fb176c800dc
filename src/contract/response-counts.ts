/** The number of responses to polls, by status or by failure label. */
export type ResponseCounts = Readonly<Record<string, number>>;

/**
 * The maximum number of keys, because an agent service that returns new statuses must not fill the history. After that, a
 * response with a new key counts as `other`.
 */
const MAX_KEYS = 32;

export function addCounts(...all: readonly ResponseCounts[]): ResponseCounts {
  const sum = new Map<string, number>();
  for (const counts of all)
    for (const [name, times] of Object.entries(counts)) {
      const key = sum.has(name) || sum.size < MAX_KEYS ? name : 'other';
      sum.set(key, (sum.get(key) ?? 0) + times);
    }
  return Object.fromEntries(sum);
}
