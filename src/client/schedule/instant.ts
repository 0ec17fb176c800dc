/** A date and a time with a zone; what has none means another moment on each machine. */
const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

/** Reads a moment of ISO 8601. */
export function parseInstant(text: string): { readonly at: Date } | { readonly problem: string } {
  const at = new Date(INSTANT.test(text) ? text : NaN);
  if (!Number.isNaN(at.getTime()) && isDay(text.slice(0, 10))) return { at };
  return {
    problem: `${JSON.stringify(text.slice(0, 40))} is no moment; write date, time and zone, for example "2026-11-21T03:00:00Z" or "2026-11-21T03:00+01:00"`,
  };
}

/** JavaScript takes the 30th of February for the 2nd of March. */
function isDay(day: string): boolean {
  return new Date(`${day}T00:00Z`).toISOString().startsWith(day);
}
