import { isRecord, type JsonObject } from './json';
import { type FollowUpPlan, ON_UNKNOWN_DELIVERY, type TimerPolls, WHEN_ACTIVE } from './request';
import { type DurationText, durationText } from './units';

interface Row<Value> {
  /** One line for people. Field names and values in it are Markdown code. */
  readonly help: string;
  /** Its value in a checked request. */
  readonly of: (plan: FollowUpPlan) => Value;
}

interface IdField extends Row<string> {
  readonly kind: 'id';
  readonly required: boolean;
  /** Its name as a flag and as a column, if that differs from its own. */
  readonly shortName?: string;
}

interface PromptField extends Row<string> {
  readonly kind: 'prompt';
}

export interface ChoiceOption<Choice extends string = string> extends Row<Choice> {
  readonly kind: 'choice';
  readonly choices: readonly Choice[];
  readonly default: Choice;
}

/** A duration; its value in a checked request is in milliseconds. */
export interface DurationOption extends Row<number> {
  readonly kind: 'duration';
  readonly default: DurationText;
  /** @default 0 */
  readonly minimumMs?: number;
}

export interface NumberOption extends Row<number> {
  readonly kind: 'number';
  readonly default: number;
  readonly minimum: number;
  readonly maximum: number;
}

/** A whole number from 0 on, or `all`. */
export interface CountOption extends Row<TimerPolls> {
  readonly kind: 'count';
  readonly default: number;
  readonly maximum: number;
}

export type RequestOption = ChoiceOption | DurationOption | NumberOption | CountOption;

/** Faster polling would load server and service for nothing: a poll takes some 20 ms of server CPU. */
const MIN_POLLING_MS = 100;

/** More polls with a timer each would fill a history: each poll takes 11 events. */
const MAX_TIMER_POLLS = 1_000;

/** The fields that identify a request, and the message itself. */
export const REQUEST_IDENTITY = {
  projectId: {
    kind: 'id',
    required: true,
    shortName: 'project',
    of: (plan) => plan.projectId,
    help: 'the project that owns the job',
  },
  jobId: {
    kind: 'id',
    required: true,
    shortName: 'job',
    of: (plan) => plan.jobId,
    help: 'the job that receives the message',
  },
  prompt: {
    kind: 'prompt',
    of: (plan) => plan.prompt,
    help: 'the message, sent unaltered',
  },
  requestId: {
    kind: 'id',
    required: false,
    of: (plan) => plan.requestId,
    help: "the caller's name for this follow-up: the same name is the same follow-up, and its message is not sent again",
  },
} as const satisfies Readonly<Record<string, IdField | PromptField>>;

/**
 * The options of a request. The checker, the starter's flags, the columns of batch files, the comparison of a repeated
 * request, the details in the Web UI, the JSON Schema and the table of docs/request.md all take them from here.
 *
 * `FollowUpRequest` and `FollowUpPlan` have a property for each.
 */
export const REQUEST_OPTIONS = {
  whenActive: {
    kind: 'choice',
    choices: WHEN_ACTIVE,
    default: 'send',
    of: (plan) => plan.whenActive,
    help: 'if the job is not in a terminal status before the send: `send`, `wait` until it is, or `reject`',
  },
  onUnknownDelivery: {
    kind: 'choice',
    choices: ON_UNKNOWN_DELIVERY,
    default: 'fail',
    of: (plan) => plan.onUnknownDelivery,
    help:
      'if nobody can tell whether the message arrived: `fail`, `assume-delivered`, `resend` (at most one further POST), ' +
      'or `ask` an operator',
  },
  deadline: {
    kind: 'duration',
    default: '24h',
    of: (plan) => plan.deadlineMs,
    help: 'from the first task of the workflow to the end of the watch; more than `confirm`',
  },
  reconcile: {
    kind: 'duration',
    default: '2m',
    of: (plan) => plan.reconcileMs,
    help: 'how long an unknown delivery is looked for by reading the job, before `onUnknownDelivery` decides',
  },
  settle: {
    kind: 'duration',
    default: '30s',
    of: (plan) => plan.settleMs,
    help: 'how long a `completed` job without `prLink` is re-read before null is believed',
  },
  confirm: {
    kind: 'duration',
    default: '30s',
    of: (plan) => plan.confirmMs,
    help:
      'for so long after the POST an answer may still be from before it: nothing terminal is believed earlier; ' +
      'a status that nothing shows to be new must hold for as long again',
  },
  'polling.initial': {
    kind: 'duration',
    default: '5s',
    minimumMs: MIN_POLLING_MS,
    of: (plan) => plan.polling.initialMs,
    help: 'the shortest interval between polls, and that of reads that confirm',
  },
  'polling.growth': {
    kind: 'number',
    default: 0.1,
    minimum: 0,
    maximum: 10,
    of: (plan) => plan.polling.growth,
    help: "the next interval as a share of the turn's age",
  },
  'polling.maximum': {
    kind: 'duration',
    default: '5m',
    minimumMs: MIN_POLLING_MS,
    of: (plan) => plan.polling.maximumMs,
    help: 'the longest interval between polls; not below `polling.initial`',
  },
  'polling.jitter': {
    kind: 'number',
    default: 0.1,
    minimum: 0,
    maximum: 0.5,
    of: (plan) => plan.polling.jitter,
    help: 'the share by which an interval varies at random',
  },
  'polling.timerPolls': {
    kind: 'count',
    default: 3,
    maximum: MAX_TIMER_POLLS,
    of: (plan) => plan.polling.timerPolls,
    help: 'how many of the first polls are a durable timer and an activity each, or `all`; then one activity reads on',
  },
} as const satisfies Readonly<Record<string, RequestOption>>;

/** Every field of a request, in the order in which they are shown. */
export const REQUEST_FIELDS = { ...REQUEST_IDENTITY, ...REQUEST_OPTIONS };
export type RequestField = keyof typeof REQUEST_FIELDS;

/** The options of a checked request as a caller would write them, in the order of {@link REQUEST_OPTIONS}. */
export function optionTexts(plan: FollowUpPlan): [option: string, text: string][] {
  return Object.entries<RequestOption>(REQUEST_OPTIONS).map(([name, option]) => [
    name,
    option.kind === 'duration' ? durationText(option.of(plan)) : String(option.of(plan)),
  ]);
}

/** The value of a field of an unchecked request; undefined if it is absent or null. */
export function fieldOf(request: JsonObject, field: string): unknown {
  const [name = '', inner] = field.split('.');
  const value = request[name];
  if (inner === undefined) return value ?? undefined;
  return isRecord(value) ? (value[inner] ?? undefined) : undefined;
}

/** The unchecked request with these fields; those that are undefined or null are left out. */
export function requestWith(fields: Iterable<readonly [field: string, value: unknown]>): JsonObject {
  const request: Record<string, unknown> = {};
  const groups: Record<string, Record<string, unknown>> = {};
  for (const [field, value] of fields) {
    if (value === undefined || value === null) continue;
    const [name = '', inner] = field.split('.');
    if (inner === undefined) request[name] = value;
    else request[name] = Object.assign((groups[name] ??= {}), { [inner]: value });
  }
  return request;
}
