import { anyOf, type Checked, count, fields, isRecord, type JsonObject, number, oneOf, text } from './checks';
import { type DurationText, durationText } from './duration';

export const WHEN_ACTIVE = ['send', 'wait', 'reject'] as const;
export type WhenActive = (typeof WHEN_ACTIVE)[number];

export const ON_UNKNOWN_DELIVERY = ['fail', 'assume-delivered', 'resend', 'ask'] as const;
type OnUnknownDelivery = (typeof ON_UNKNOWN_DELIVERY)[number];

/** One message to one agent job: the input of the workflow `followUp`. docs/request.md says more of each field. */
export interface FollowUpRequest {
  /** 1 to 128 characters without control characters and U+FFFD. No segment between `/` and `\` is `.` or `..`. */
  readonly projectId: string;
  /** Same rules as `projectId`. */
  readonly jobId: string;
  /** The message, sent unaltered: 1 character to 256 KiB of UTF-8, without U+FFFD. */
  readonly prompt: string;
  /** Your name for it. The same name is the same follow-up, sent once. @default the workflow id as given */
  readonly requestId?: string;
  /** What happens if the job is not idle before the send. @default 'wait' */
  readonly whenActive?: WhenActive | undefined;
  /** What happens if it is unknown whether the message arrived. @default 'fail' */
  readonly onUnknownDelivery?: OnUnknownDelivery | undefined;
  /** The time from the workflow's start (after its start delay) to the last read. Longer than `maxStaleness`. @default '24h' */
  readonly deadline?: DurationText | undefined;
  readonly polling?: PollingRequest | undefined;
  /** How long the job is read after an unknown delivery before `onUnknownDelivery` decides. @default '2m' */
  readonly reconcileTimeout?: DurationText | undefined;
  /** How long a `completed` job without `prLink` is read again before null is accepted. @default '30s' */
  readonly prLinkTimeout?: DurationText | undefined;
  /** How old a response may be: a terminal status is accepted only from a read made at least this long after the POST. @default '30s' */
  readonly maxStaleness?: DurationText | undefined;
}

/** The next interval is `growth` × the turn's age, within bounds, ± `jitter`. */
export interface PollingRequest {
  /** The shortest interval, at least 100ms. @default '5s' */
  readonly initial?: DurationText | undefined;
  /** 0 (always `initial`) to 10. @default 0.1 */
  readonly growth?: number | undefined;
  /** The longest interval. @default '5m' */
  readonly maximum?: DurationText | undefined;
  /** 0 to 0.5, at the maximum too. @default 0.1 */
  readonly jitter?: number | undefined;
  /** How many of the first polls are a durable timer and a read activity each; the later ones are retries of one activity. @default 2 */
  readonly timerPolls?: number | 'all' | undefined;
}

const isPolling = fields({
  initialMs: number,
  growth: number,
  maximumMs: number,
  jitter: number,
  timerPolls: anyOf(oneOf('all'), count),
});
export type Polling = Checked<typeof isPolling>;

/** A checked request with its defaults, without its message; durations in milliseconds. */
export const isWatchPlan = fields({
  projectId: text,
  jobId: text,
  /** Or the workflow id if the caller left it out. */
  requestId: text,
  whenActive: oneOf(...WHEN_ACTIVE),
  onUnknownDelivery: oneOf(...ON_UNKNOWN_DELIVERY),
  deadlineMs: number,
  reconcileTimeoutMs: number,
  prLinkTimeoutMs: number,
  maxStalenessMs: number,
  polling: isPolling,
});
export type FollowUpPlan = Checked<typeof isWatchPlan> & { readonly prompt: string };

/** Field names and values in the line of help are Markdown code. */
export type RequestOption = { readonly help: string } & (
  | { readonly kind: 'choice'; readonly choices: readonly string[]; readonly default: string }
  | { readonly kind: 'duration'; readonly default: DurationText; readonly minimumMs?: number }
  | { readonly kind: 'number'; readonly default: number; readonly minimum: number; readonly maximum: number }
  /** A whole number from 0 on, or `all`. */
  | { readonly kind: 'count'; readonly default: number; readonly maximum: number }
);

/** A poll takes some 20 ms of the server's CPU. */
const MIN_POLLING_MS = 100;

export const REQUEST_IDENTITY = {
  // `shortName`: as a flag and as a column.
  projectId: { kind: 'id', required: true, shortName: 'project', help: 'the project that owns the job' },
  jobId: { kind: 'id', required: true, shortName: 'job', help: 'the job that receives the message' },
  prompt: { kind: 'prompt', required: true, help: 'the message, sent unaltered' },
  requestId: {
    kind: 'name',
    required: false,
    help: "the caller's name for this follow-up: the same name is the same follow-up, and its message is not sent again",
  },
} as const;

/**
 * The options of a request, of which all else is made (docs/architecture.md). `FollowUpRequest` and `FollowUpPlan` have a
 * property for each; a duration's ends in `Ms` in the plan.
 */
export const REQUEST_OPTIONS = {
  whenActive: {
    kind: 'choice',
    choices: WHEN_ACTIVE,
    default: 'wait',
    help:
      'if the job is not idle before the send: `wait` until it is idle, `send` into the running turn, or `reject`; with ' +
      '`wait`, the job lock serializes follow-ups to one job',
  },
  onUnknownDelivery: {
    kind: 'choice',
    choices: ON_UNKNOWN_DELIVERY,
    default: 'fail',
    help:
      'if it is unknown whether the message arrived: `fail`, `assume-delivered`, `resend` (at most one further POST), ' +
      'or `ask` an operator',
  },
  deadline: {
    kind: 'duration',
    default: '24h',
    help:
      "the time from the workflow's start (after its start delay) to the end of the watch; no message is sent after it; must be " +
      'longer than `maxStaleness`',
  },
  reconcileTimeout: {
    kind: 'duration',
    default: '2m',
    help: 'how long the job is read to find out whether a message of unknown delivery arrived; then `onUnknownDelivery` decides',
  },
  prLinkTimeout: {
    kind: 'duration',
    default: '30s',
    help: 'how long a `completed` job without `prLink` is read again before null is accepted',
  },
  maxStaleness: {
    kind: 'duration',
    default: '30s',
    help:
      'how long after the POST a response may still describe the job before the message: no terminal status is accepted ' +
      'earlier, and if nothing shows that the status is new, it must stay the same for this time again',
  },
  'polling.initial': {
    kind: 'duration',
    default: '5s',
    minimumMs: MIN_POLLING_MS,
    help: 'the shortest interval between polls',
  },
  'polling.growth': {
    kind: 'number',
    default: 0.1,
    minimum: 0,
    maximum: 10,
    help: "the next interval as a share of the turn's age",
  },
  'polling.maximum': {
    kind: 'duration',
    default: '5m',
    minimumMs: MIN_POLLING_MS,
    help: 'the longest interval between polls; not below `polling.initial`',
  },
  'polling.jitter': {
    kind: 'number',
    default: 0.1,
    minimum: 0,
    maximum: 0.5,
    help: 'the share by which an interval varies at random',
  },
  'polling.timerPolls': {
    kind: 'count',
    default: 2,
    // More would fill a history: each poll takes 11 events.
    maximum: 1_000,
    help: 'how many of the first polls are a durable timer and a read activity each, or `all`; the later ones are retries of one activity',
  },
} as const satisfies Readonly<Record<string, RequestOption>>;

/** In the order in which they are shown. */
export const REQUEST_FIELDS = { ...REQUEST_IDENTITY, ...REQUEST_OPTIONS };
export type RequestField = keyof typeof REQUEST_FIELDS;
export type RequestRow = RequestOption | (typeof REQUEST_IDENTITY)[keyof typeof REQUEST_IDENTITY];

export function fieldOfPlan(field: string, { kind }: { readonly kind: string }): string {
  return kind === 'duration' ? `${field}Ms` : field;
}

/** The options of a checked request as a caller would write them. */
export function optionTexts(plan: FollowUpPlan): [option: string, text: string][] {
  return Object.entries<RequestOption>(REQUEST_OPTIONS).map(([name, option]) => {
    const value = fieldOf({ ...plan }, fieldOfPlan(name, option));
    return [name, option.kind === 'duration' ? durationText(Number(value)) : String(value)];
  });
}

/** Of an unchecked request; undefined for null too. */
export function fieldOf(request: JsonObject, field: string): unknown {
  const [name = '', inner] = field.split('.');
  const value = request[name];
  if (inner === undefined) return value ?? undefined;
  return isRecord(value) ? (value[inner] ?? undefined) : undefined;
}

/** An unchecked request of these fields, but for those that are undefined or null. */
export function requestWith(fields: Iterable<readonly [field: string, value: unknown]>): JsonObject {
  const request: Record<string, unknown> = {};
  for (const [field, value] of fields) {
    if (value === undefined || value === null) continue;
    const [name = '', inner] = field.split('.');
    request[name] = inner === undefined ? value : { ...(request[name] as object), [inner]: value };
  }
  return request;
}
