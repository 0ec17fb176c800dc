/**
 * The known word that a misspelt one probably means: the one with the fewest single-character edits; undefined where no
 * word is near.
 *
 * @param maxEdits by default half of the known word's length
 */
export function nearest(word: string, known: readonly string[], maxEdits?: number): string | undefined {
  const byDistance = known
    .map((candidate) => ({ candidate, distance: editDistance(word.slice(0, 60), candidate) }))
    .filter(({ candidate, distance }) => distance <= (maxEdits ?? candidate.length / 2))
    .sort((left, right) => left.distance - right.distance);
  return byDistance[0]?.candidate;
}

/** Levenshtein's distance, row by row. */
function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (let i = 1; i <= left.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= right.length; j += 1) {
      const substitution = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1);
      next.push(Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[right.length] ?? 0;
}
