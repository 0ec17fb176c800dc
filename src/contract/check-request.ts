import { isRecord, type JsonObject, type Problem, typeName } from './checks';
import { followUpWorkflowId } from './ids';
import {
  getField,
  toPlanFieldName,
  type FollowUpPlan,
  REQUEST_FIELDS,
  type RequestRow,
  buildRequest,
} from './request';
import {
  MAX_ID_CHARACTERS,
  MAX_PROMPT_BYTES,
  MAX_WORKFLOW_ID_BYTES,
  quote,
  utf8ByteLength,
  replaceUnsafe,
} from './text';
import { parseDuration } from './duration';

type CheckedRequest =
  | { readonly ok: true; readonly plan: FollowUpPlan }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * Checks a request and adds the defaults. Clients check a request before they start a workflow, and the workflow checks its input.
 *
 * @param workflowId the ID of the workflow, if a workflow checks its input. If the request has no request ID, the workflow ID is
 * the request ID. Otherwise, the workflow ID must be the ID that is derived from the request.
 * @returns the plan, or all problems
 */
export function checkRequest(input: unknown, workflowId?: string): CheckedRequest {
  if (!isRecord(input)) {
    const text = `must be one JSON object, a FollowUpRequest, not ${typeName(input)}`;
    return { ok: false, problems: [{ field: 'input', text }] };
  }
  const problems: Problem[] = [];
  const addProblem = (field: string, text: string) => problems.push({ field, text });
  const values = Object.entries<RequestRow>(REQUEST_FIELDS).map(([field, row]) => {
    const read = readField(row, getField(input, field));
    if ('problem' in read) addProblem(field, replaceUnsafe(read.problem));
    return [toPlanFieldName(field, row), 'value' in read ? read.value : null] as const;
  });
  const polling = getField(input, 'polling') ?? {};
  if (isRecord(polling)) problems.push(...unknownFieldProblems(polling, 'polling.'));
  else addProblem('polling', `must be an object, not ${typeName(polling)}`);
  problems.push(...unknownFieldProblems(input));
  // If the list of problems is empty, every value has the kind of its row, and the cast is valid.
  const plan = { requestId: workflowId, ...buildRequest(values) } as unknown as FollowUpPlan;
  if (problems.length === 0) {
    const { deadlineMs, maxStalenessMs } = plan;
    const { initialMs, maximumMs } = plan.polling;
    if (deadlineMs <= maxStalenessMs)
      addProblem(
        'deadline',
        `must be longer than maxStaleness (${maxStalenessMs} ms); it is ${deadlineMs} ms`,
      );
    if (maximumMs < initialMs)
      addProblem(
        'polling.maximum',
        `must not be below polling.initial (${initialMs} ms); it is ${maximumMs} ms`,
      );
  }
  const hasRequestId = getField(input, 'requestId') !== undefined;
  if (!hasRequestId && workflowId === undefined)
    addProblem('requestId', 'is missing; set a request ID of 1 to 128 characters');
  const text = problems.length === 0 && hasRequestId ? workflowIdProblem(plan, workflowId) : undefined;
  if (text !== undefined) addProblem('requestId', text);
  return problems.length > 0 ? { ok: false, problems } : { ok: true, plan };
}

function identityProblem(kind: 'id' | 'name' | 'prompt', value: unknown): string | undefined {
  if (kind === 'prompt') return promptProblem(value);
  return kind === 'id' ? idProblem(value) : nameProblem(value, MAX_ID_CHARACTERS);
}

function readField(
  row: RequestRow,
  input: unknown,
): { readonly value: unknown } | { readonly problem: string } {
  if ('required' in row) {
    if (input === undefined && !row.required) return { value: input };
    const problem = identityProblem(row.kind, input);
    return problem === undefined ? { value: input } : { problem };
  }
  const value = input ?? row.default;
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
  const [valueKind, other] = kind === 'count' ? ['whole number', ', or all'] : ['number', ''];
  return { problem: `must be a ${valueKind} from ${minimum} to ${maximum}${other}; it is ${quote(value)}` };
}

const FIELDS = Object.keys(REQUEST_FIELDS);

/** The maximum number of unknown fields that are reported, because an input may have 100,000 unknown fields. */
const MAX_OTHER_FIELDS = 50;

/** Reports unknown fields, because a misspelled option would otherwise silently have its default. */
function unknownFieldProblems(input: JsonObject, group = ''): Problem[] {
  const names = FIELDS.map((field) => field.split('.')).map(([name, inner]) => (group === '' ? name : inner));
  const others = Object.keys(input).filter((name) => !names.includes(name) && input[name] !== undefined);
  const text = `is not a valid field; the valid fields are ${FIELDS.join(', ')}`;
  return others
    .slice(0, MAX_OTHER_FIELDS)
    .map((name) => ({ field: replaceUnsafe(group + quote(name)), text }));
}

function workflowIdProblem(
  { projectId, jobId, requestId }: FollowUpPlan,
  workflowId: string | undefined,
): string | undefined {
  const derived = followUpWorkflowId(projectId, jobId, requestId);
  // Each character of a percent-encoded text takes one byte.
  if (derived.length > MAX_WORKFLOW_ID_BYTES)
    return `the workflow ID from projectId, jobId and requestId would have ${derived.length} bytes, and the maximum is ${MAX_WORKFLOW_ID_BYTES}; shorten one of the three IDs`;
  if (workflowId === undefined || workflowId === derived) return undefined;
  return `the workflow ID of this request must be ${quote(derived, MAX_WORKFLOW_ID_BYTES)}; it is ${quote(workflowId, MAX_WORKFLOW_ID_BYTES)}`;
}

/**
 * Returns why a value is not a project ID or a job ID, or undefined if the value is valid. A URL contains each of these IDs as one
 * path segment.
 */
export function idProblem(value: unknown): string | undefined {
  return (
    nameProblem(value, MAX_ID_CHARACTERS) ?? (typeof value === 'string' ? segmentProblem(value) : undefined)
  );
}

/** Gateways may decode `%2F` and `%5C` before they route a request. A segment `.` or `..` would then lead to another path. */
function segmentProblem(id: string): string | undefined {
  const segment = id.split(/[/\\]/).find((each) => each === '.' || each === '..');
  if (segment === undefined) return undefined;
  return `must not have the path segment "${segment}", because a URL with this segment leads to another path`;
}

/**
 * Returns why a value is not a name, for example a request ID, or undefined if the value is valid. A name may have any path
 * segments, because no URL contains a name.
 */
export function nameProblem(value: unknown, maximum: number): string | undefined {
  return textProblem(value, (text) => {
    const length = Array.from(text).length;
    if (length > maximum) return `must have at most ${maximum} characters; it has ${length}`;
    return /\p{Cc}/u.test(text) ? 'must not have control characters' : undefined;
  });
}

function promptProblem(value: unknown): string | undefined {
  return textProblem(value, (text) => {
    const bytes = utf8ByteLength(text);
    if (bytes <= MAX_PROMPT_BYTES) return undefined;
    return `must be at most ${MAX_PROMPT_BYTES} bytes of UTF-8; it is ${bytes}`;
  });
}

function textProblem(value: unknown, more: (text: string) => string | undefined): string | undefined {
  if (value === undefined) return 'is missing';
  if (typeof value !== 'string') return `must be a string, not ${typeName(value)}`;
  if (value === '') return 'must not be empty';
  if (!value.isWellFormed()) return "must not have a lone surrogate, because UTF-8 can't encode it";
  // A UTF-8 decoder returns U+FFFD for the bytes of another encoding, such as Latin-1.
  if (value.includes('\ufffd'))
    return 'must not have U+FFFD, because this character replaces bytes that are not UTF-8; send the text as UTF-8';
  return more(value);
}
