import type { Problem } from '../core/checks';
import { quote } from '../core/text';
import { InvalidRequestError } from './errors';

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
