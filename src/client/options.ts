import type { Problem } from '../contract/checks';
import { quote } from '../contract/text';
import { throwIfProblems } from './errors';

export function unknownOptions(given: object, options: readonly string[]): Problem[] {
  const text = `is not an option here; the options are ${options.join(', ')}`;
  return Object.keys(given).flatMap((field) => (options.includes(field) ? [] : [{ field, text }]));
}

/** @throws InvalidRequestError */
export function checkName(field: string, value: unknown): void {
  throwIfProblems(nameProblems(field, value));
}

/** Callers without TypeScript give anything, and no server takes half a character. */
export function nameProblems(field: string, value: unknown): Problem[] {
  if (typeof value === 'string' && value !== '' && value.isWellFormed()) return [];
  return [{ field, text: `must be a well-formed text of at least one character; it is ${quote(value)}` }];
}
