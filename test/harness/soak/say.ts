/** What a soak draws: always the same, unless `FOLLOW_UP_SOAK_SEED` says another. The order in time is the machine's. */
export const SEED = Number(process.env.FOLLOW_UP_SOAK_SEED ?? 1);

/** Tells whoever reads the output of a soak. */
export function say(line: string): void {
  process.stderr.write(`[soak] ${line}\n`);
}

/** How often each of them is there: `3 kill, 12 start`. */
export function counted(words: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].map(([word, count]) => `${count} ${word}`).join(', ');
}
