import { CONCURRENCY, settingProblems, type Tolerance } from '../core/batch/batch';
import type { Problem } from '../core/checks';
import { quote } from '../core/text';
import { InvalidRequestError } from './errors';

/** How a batch runs. */
export interface RunOptions {
  /** How many follow-ups of a batch are open at a time, 1 to 1,000. @default what the batch had before; 50 for a new one */
  readonly concurrency?: number | undefined;
  /**
   * With more failures than this a batch starts no further item and fails. Null tolerates any number.
   *
   * @default what the batch had before; null for a new one
   */
  readonly tolerate?: Tolerance | undefined;
}

/**
 * Checks options before anything is started; callers without TypeScript give anything.
 *
 * @param others names of options beside those of {@link RunOptions}
 * @param problems that were found before
 * @throws InvalidRequestError with every problem
 */
export function checkRunOptions(
  options: RunOptions,
  others: readonly string[],
  problems: Problem[] = [],
): void {
  const { concurrency, tolerate } = options;
  problems.push(...settingProblems(concurrency ?? CONCURRENCY.default, tolerate ?? null));
  problems.push(...unknownOptions(options, ['concurrency', 'tolerate', ...others]));
  if (problems.length > 0) throw new InvalidRequestError(problems);
}

export function unknownOptions(given: object, known: readonly string[]): Problem[] {
  const text = `is not an option here; the options are ${known.join(', ')}`;
  return Object.keys(given).flatMap((field) => (known.includes(field) ? [] : [{ field, text }]));
}

/** Checks the name in a handle. @throws InvalidRequestError */
export function checkName(field: string, value: unknown): void {
  const problems = nameProblems(field, value);
  if (problems.length > 0) throw new InvalidRequestError(problems);
}

/** Callers without TypeScript give anything, and no server takes half a character. */
export function nameProblems(field: string, value: unknown): Problem[] {
  if (typeof value === 'string' && value !== '' && value.isWellFormed()) return [];
  return [{ field, text: `must be a well-formed text of at least one character; it is ${quote(value)}` }];
}
