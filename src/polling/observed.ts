/** Distinct answers that are counted by name; a service that answers ever new words must not swell the history. */
const MAX_KEYS = 32;

/** The counts after one more answer of that name, or `times` more; beyond 32 names they count as `other`. */
export function countAnswer(
  observed: Readonly<Record<string, number>>,
  name: string,
  times = 1,
): Record<string, number> {
  const known = Object.hasOwn(observed, name);
  const key = known || Object.keys(observed).length < MAX_KEYS ? name : 'other';
  return { ...observed, [key]: (Object.hasOwn(observed, key) ? (observed[key] ?? 0) : 0) + times };
}

/** The counts of both. */
export function addCounts(
  observed: Readonly<Record<string, number>>,
  more: Readonly<Record<string, number>>,
): Record<string, number> {
  return Object.entries(more).reduce<Record<string, number>>(
    (sum, [name, times]) => countAnswer(sum, name, times),
    { ...observed },
  );
}
