/** Distinct answers that are counted by name; a service that answers ever new words must not swell the history. */
const MAX_KEYS = 32;

/** The counts after one more answer of that name; beyond 32 names it counts as `other`. */
export function countAnswer(
  observed: Readonly<Record<string, number>>,
  name: string,
): Record<string, number> {
  const known = Object.hasOwn(observed, name);
  const key = known || Object.keys(observed).length < MAX_KEYS ? name : 'other';
  return { ...observed, [key]: (Object.hasOwn(observed, key) ? (observed[key] ?? 0) : 0) + 1 };
}
