/** How often a long step says that it is still going on: often enough that nobody takes it for dead. */
const INTERVAL_MS = 15_000;

/** Calls `say` every 15 s with the time since the start, such as `1 min 15 s`, until the returned function is called. */
export function every15Seconds(say: (elapsed: string) => void): () => void {
  const start = Date.now();
  const timer = setInterval(() => {
    say(formatElapsed(Date.now() - start));
  }, INTERVAL_MS);
  return () => {
    clearInterval(timer);
  };
}

/** `75000` ms is `1 min 15 s`. */
export function formatElapsed(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
