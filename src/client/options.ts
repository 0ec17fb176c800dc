import { isRecord, typeName } from '../contract/checks';
import { parseDuration } from '../contract/duration';
import { UUID } from '../contract/ids';
import { DELIVERY_DECISIONS } from '../contract/result';
import { quote } from '../contract/text';
import { invalidFieldError, throwIfProblems } from './errors';

/** Returns why a value is not valid; undefined for a valid value. Callers without TypeScript may pass any value. */
export type OptionCheck = (value: unknown) => string | undefined;

/** A check for each option of a call, or for each condition of a filter. */
export type OptionChecks<Options> = Readonly<Record<keyof Options & string, OptionCheck>>;

/** @param form the valid values, for example `true or false` */
export function createCheck(isValid: (value: unknown) => boolean, form: string): OptionCheck {
  return (value) => (isValid(value) ? undefined : `must be ${form}; it is ${quote(value)}`);
}

/** A string in place of an object would otherwise be treated as an object without options. */
export const objectProblem: OptionCheck = (value) =>
  isRecord(value) ? undefined : `must be an object, not ${typeName(value)}`;

/** The Temporal server rejects strings with unpaired surrogates. */
export const stringProblem = createCheck(
  (value) => typeof value === 'string' && value !== '' && value.isWellFormed(),
  'a non-empty, well-formed string',
);

export const booleanProblem = createCheck((value) => typeof value === 'boolean', 'true or false');

export const durationProblem: OptionCheck = (value) => {
  const duration = parseDuration(value);
  return 'problem' in duration ? duration.problem : undefined;
};

/**
 * Checks the options of a call. An option that is undefined counts as omitted.
 *
 * @param checks the checks of the options that the call accepts
 * @throws InvalidRequestError with every problem
 */
export function checkOptions(
  given: unknown,
  checks: Readonly<Record<string, OptionCheck>>,
  field = 'options',
): void {
  checkObject(field, given);
  const problems = Object.entries(given as object).map(([name, value]): [string, string | undefined] => {
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (check !== undefined) return [name, value === undefined ? undefined : check(value)];
    return [name, `is not a valid option; the valid options are ${Object.keys(checks).join(', ')}`];
  });
  throwIfProblems(problems.flatMap(([name, text]) => (text === undefined ? [] : [{ field: name, text }])));
}

/** @throws InvalidRequestError if an argument is not an object */
export function checkObject(field: string, value: unknown): void {
  throwIfProblem(field, objectProblem(value));
}

function throwIfProblem(field: string, text: string | undefined): void {
  if (text !== undefined) throw invalidFieldError(field, text);
}

/** @throws InvalidRequestError if the value is not a valid ID or name */
export function checkName(field: string, value: unknown): void {
  throwIfProblem(field, stringProblem(value));
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
