import { isRecord, type Problem, typeName } from '../contract/checks';
import { parseDuration } from '../contract/duration';
import { UUID } from '../contract/ids';
import { DELIVERY_DECISIONS } from '../contract/result';
import { quote } from '../contract/text';
import { invalidFieldError, throwIfProblems } from './errors';

/** Returns a problem for each given option that is not in the list. */
export function unknownOptions(given: object, options: readonly string[]): Problem[] {
  const text = `is not a valid option; the valid options are ${options.join(', ')}`;
  return Object.keys(given).flatMap((field) => (options.includes(field) ? [] : [{ field, text }]));
}

/**
 * Checks that an argument is an object. Callers without TypeScript may pass any value. A string in place of an object would otherwise
 * be treated as an object without options.
 *
 * @throws InvalidRequestError
 */
export function checkObject(field: string, value: unknown): void {
  if (!isRecord(value)) throw invalidFieldError(field, `must be an object, not ${typeName(value)}`);
}

/** Checks the options of a call. @throws InvalidRequestError if they are not an object, or have an unknown option */
export function checkOptions(given: unknown, options: readonly string[]): void {
  checkObject('options', given);
  throwIfProblems(unknownOptions(given as object, options));
}

/** @throws InvalidRequestError if the value is not a valid ID or name */
export function checkName(field: string, value: unknown): void {
  throwIfProblems(nameProblems(field, value));
}

const EXAMPLE_RUN_ID = '01890a5d-ac96-774b-bcce-b302099a8057';

/**
 * Checks the IDs of a handle. Temporal's run IDs are UUIDs, and the Temporal server rejects every other ID with an internal error
 * text. @throws InvalidRequestError
 */
export function checkRun(workflowId: unknown, runId: unknown): void {
  checkName('workflowId', workflowId);
  if (runId === undefined || (typeof runId === 'string' && UUID.test(runId))) return;
  throw invalidFieldError(
    'runId',
    `must be the ID of a run, such as ${EXAMPLE_RUN_ID}; it is ${quote(runId)}`,
  );
}

/**
 * Returns the problem of an ID or a name, if it has one. Callers without TypeScript may pass any value, and the Temporal server
 * rejects strings with unpaired surrogates.
 */
export function nameProblems(field: string, value: unknown): Problem[] {
  if (typeof value === 'string' && value !== '' && value.isWellFormed()) return [];
  return [{ field, text: `must be a non-empty, well-formed string; it is ${quote(value)}` }];
}

/** Returns the problem of an optional boolean, if it has one. */
export function booleanProblems(field: string, value: unknown): Problem[] {
  if (value === undefined || typeof value === 'boolean') return [];
  return [{ field, text: `must be true or false; it is ${quote(value)}` }];
}

/** Returns a duration in milliseconds. @throws InvalidRequestError if the value is not a duration such as `30s` */
export function checkDuration(field: string, value: unknown): number {
  const duration = parseDuration(value);
  if ('problem' in duration) throw invalidFieldError(field, duration.problem);
  return duration.ms;
}

/** @throws InvalidRequestError if the value is not a decision about a delivery */
export function checkDecision(value: unknown): void {
  if (DELIVERY_DECISIONS.some((each) => each === value)) return;
  throw invalidFieldError(
    'decision',
    `must be one of ${DELIVERY_DECISIONS.join(', ')}; it is ${quote(value)}`,
  );
}
