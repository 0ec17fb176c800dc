import { isRecord, type JsonObject, type Problem, typeName } from './checks';
import { followUpWorkflowId } from './ids';
import {
  fieldOf,
  fieldOfPlan,
  type FollowUpPlan,
  REQUEST_FIELDS,
  type RequestRow,
  requestWith,
} from './request';
import {
  MAX_ID_CHARACTERS,
  MAX_PROMPT_BYTES,
  MAX_WORKFLOW_ID_BYTES,
  quote,
  utf8Bytes,
  visible,
} from './text';
import { parseDuration } from './units';

type CheckedRequest =
  | { readonly ok: true; readonly plan: FollowUpPlan }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * Checks a request before anything is started, and the input of a workflow, and fills in the defaults.
 *
 * @param workflowId of the workflow, if there is one: the name of the follow-up if it has no `requestId`, else the derived one
 * @returns the plan, or every problem at once
 */
export function checkRequest(input: unknown, workflowId?: string): CheckedRequest {
  if (!isRecord(input)) {
    const text = `must be one JSON object, a FollowUpRequest, not ${typeName(input)}`;
    return { ok: false, problems: [{ field: 'input', text }] };
  }
  const problems: Problem[] = [];
  const refuse = (field: string, text: string) => problems.push({ field, text });
  const values = Object.entries<RequestRow>(REQUEST_FIELDS).map(([field, row]) => {
    const read = readField(row, fieldOf(input, field));
    if ('problem' in read) refuse(field, visible(read.problem));
    return [fieldOfPlan(field, row), 'value' in read ? read.value : null] as const;
  });
  const polling = fieldOf(input, 'polling') ?? {};
  if (isRecord(polling)) problems.push(...otherFields(polling, 'polling.'));
  else refuse('polling', `must be an object, not ${typeName(polling)}`);
  problems.push(...otherFields(input));
  // A value that is not of its row's kind is a problem.
  const plan = { requestId: workflowId, ...requestWith(values) } as unknown as FollowUpPlan;
  if (problems.length === 0) {
    const { deadlineMs, confirmMs } = plan;
    const { initialMs, maximumMs } = plan.polling;
    if (deadlineMs <= confirmMs)
      refuse('deadline', `must be more than the confirm time, ${confirmMs} ms; it is ${deadlineMs} ms`);
    if (maximumMs < initialMs)
      refuse(
        'polling.maximum',
        `must not be below the initial interval, ${initialMs} ms; it is ${maximumMs} ms`,
      );
  }
  const hasName = fieldOf(input, 'requestId') !== undefined;
  if (!hasName && workflowId === undefined)
    refuse('requestId', 'is missing; it must be a name of 1 to 128 characters');
  const text = problems.length === 0 && hasName ? workflowIdProblem(plan, workflowId) : undefined;
  if (text !== undefined) refuse('requestId', text);
  return problems.length > 0 ? { ok: false, problems } : { ok: true, plan };
}

function readField(
  row: RequestRow,
  given: unknown,
): { readonly value: unknown } | { readonly problem: string } {
  if ('required' in row) {
    if (given === undefined && !row.required) return { value: given };
    const problem = row.kind === 'id' ? idProblem(given) : promptProblem(given);
    return problem === undefined ? { value: given } : { problem };
  }
  const value = given ?? row.default;
  if (row.kind === 'duration') {
    const parsed = parseDuration(value);
    if ('problem' in parsed) return parsed;
    const { minimumMs = 0 } = row;
    return parsed.ms < minimumMs ? { problem: `must be at least ${minimumMs}ms` } : { value: parsed.ms };
  }
  if (row.kind === 'choice') {
    if (row.choices.some((choice) => choice === value)) return { value };
    return { problem: `must be one of ${row.choices.join(', ')}; it is ${quote(value)}` };
  }
  const { kind, minimum, maximum } = { minimum: 0, ...row };
  const isWithin = typeof value === 'number' && value >= minimum && value <= maximum;
  if (kind === 'number' ? isWithin : value === 'all' || (isWithin && Number.isInteger(value)))
    return { value };
  const [what, other] = kind === 'count' ? ['whole number', ', or all'] : ['number', ''];
  return { problem: `must be a ${what} from ${minimum} to ${maximum}${other}; it is ${quote(value)}` };
}

const FIELDS = Object.keys(REQUEST_FIELDS);

/** An input may have 100,000 of them. */
const MAX_OTHER_FIELDS = 50;

/** A misspelt option must not be a default. */
function otherFields(given: JsonObject, group = ''): Problem[] {
  const names = FIELDS.map((field) => field.split('.')).map(([name, inner]) => (group === '' ? name : inner));
  const others = Object.keys(given).filter((name) => !names.includes(name) && given[name] !== undefined);
  const text = `is not a field here; the fields are ${FIELDS.join(', ')}`;
  return others.slice(0, MAX_OTHER_FIELDS).map((name) => ({ field: visible(group + quote(name)), text }));
}

function workflowIdProblem(
  { projectId, jobId, requestId }: FollowUpPlan,
  given: string | undefined,
): string | undefined {
  const derived = followUpWorkflowId(projectId, jobId, requestId);
  // Percent-encoded, so one byte a character.
  if (derived.length > MAX_WORKFLOW_ID_BYTES)
    return `the workflow id made of project, job and request id would be ${derived.length} bytes long; at most ${MAX_WORKFLOW_ID_BYTES} are possible, so shorten one of them`;
  if (given === undefined || given === derived) return undefined;
  return `its follow-up must have the workflow id ${quote(derived, MAX_WORKFLOW_ID_BYTES)}; this workflow's id is ${quote(given, MAX_WORKFLOW_ID_BYTES)}`;
}

/** Why a value is not a name that a URL can carry as one path segment; undefined if it is. */
export function idProblem(value: unknown): string | undefined {
  if (value === '.' || value === '..') return `must not be "${value}": no URL can carry it as a path segment`;
  return nameProblem(value, MAX_ID_CHARACTERS);
}

export function nameProblem(value: unknown, maximum: number): string | undefined {
  return textProblem(value, (text) => {
    const length = Array.from(text).length;
    if (length > maximum) return `must have at most ${maximum} characters; it has ${length}`;
    return /\p{Cc}/u.test(text) ? 'must not hold control characters' : undefined;
  });
}

function promptProblem(value: unknown): string | undefined {
  return textProblem(value, (text) => {
    const bytes = utf8Bytes(text);
    if (bytes <= MAX_PROMPT_BYTES) return undefined;
    return `must be at most ${MAX_PROMPT_BYTES} bytes of UTF-8; it is ${bytes}`;
  });
}

function textProblem(value: unknown, more: (text: string) => string | undefined): string | undefined {
  if (value === undefined) return 'is missing';
  if (typeof value !== 'string') return `must be a text, not ${typeName(value)}`;
  if (value === '') return 'must not be empty';
  return value.isWellFormed() ? more(value) : 'must not hold a lone surrogate: it has no UTF-8 form';
}
