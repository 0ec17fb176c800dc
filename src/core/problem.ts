/**
 * One thing that is wrong with an input. It is data, so that whoever shows it can name the field in his own way: as a
 * flag, a column, or a path in JSON.
 */
export interface Problem {
  /** The path of the field, such as `polling.initial`, or the place of an item, such as `line 3`. */
  readonly field: string;
  /** What is wrong with it, and what is right. It names no field by its path. */
  readonly text: string;
}

/** @param nameOf the reader's names for fields; a field without one keeps its path */
export function problemText({ field, text }: Problem, nameOf: Readonly<Record<string, string>> = {}): string {
  return `${nameOf[field] ?? field}: ${text}`;
}
