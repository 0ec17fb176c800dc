import type { Problem } from '../contract/checks';
import { quote } from '../contract/text';
import { throwIfProblems } from './errors';

/** Returns a problem for each given option that is not in the list. */
export function unknownOptions(given: object, options: readonly string[]): Problem[] {
  const text = `is not a valid option; the valid options are ${options.join(', ')}`;
  return Object.keys(given).flatMap((field) => (options.includes(field) ? [] : [{ field, text }]));
}

/** @throws InvalidRequestError if the value is not a valid ID or name */
export function checkName(field: string, value: unknown): void {
  throwIfProblems(nameProblems(field, value));
}

/**
 * Returns the problem of an ID or a name, if it has one. Callers without TypeScript may pass any value, and the Temporal server
 * rejects strings with unpaired surrogates.
 */
export function nameProblems(field: string, value: unknown): Problem[] {
  if (typeof value === 'string' && value !== '' && value.isWellFormed()) return [];
  return [{ field, text: `must be a non-empty, well-formed string; it is ${quote(value)}` }];
}
