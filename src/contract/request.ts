import {
  unionOf,
  type Checked,
  count,
  objectOf,
  isRecord,
  type JsonObject,
  number,
  literalOf,
  text,
} from './checks';
import { type DurationText, durationText } from './duration';

export const WHEN_ACTIVE = ['send', 'wait', 'reject'] as const;
export type WhenActive = (typeof WHEN_ACTIVE)[number];

export const ON_UNKNOWN_DELIVERY = ['fail', 'assume-delivered', 'resend', 'ask'] as const;
type OnUnknownDelivery = (typeof ON_UNKNOWN_DELIVERY)[number];

/** The input of the workflow `followUp`: one message to one agent job. docs/request.md explains each field. */
export interface FollowUpRequest {
  /**
   * The ID of the project that has the job: 1 to 128 characters without control characters and U+FFFD. If the ID is split at
   * `/` and `\`, no segment is `.` or `..`.
   */
  readonly projectId: string;
  /** The ID of the job that receives the message, with the same rules as `projectId`. */
  readonly jobId: string;
  /** The message, which is sent unaltered: 1 character to 256 KiB of UTF-8, without U+FFFD. */
  readonly prompt: string;
  /**
   * The caller's idempotency key: the same request ID is the same follow-up, whose message is sent once.
   * @default the workflow ID
   */
  readonly requestId?: string;
  /** The behavior if the job is not idle before the send. @default 'wait' */
  readonly whenActive?: WhenActive | undefined;
  /** The behavior if it is unknown whether the message arrived. @default 'fail' */
  readonly onUnknownDelivery?: OnUnknownDelivery | undefined;
  /**
   * The maximum time from the workflow's start (after its start delay) to the end of the watch. Longer than `maxStaleness`.
   * @default '24h'
   */
  readonly deadline?: DurationText | undefined;
  /** The intervals between the reads of the job. */
  readonly polling?: PollingRequest | undefined;
  /** The time after a POST of unknown delivery for which the job is read before `onUnknownDelivery` decides. @default '2m' */
  readonly reconcileTimeout?: DurationText | undefined;
  /** The time for which a `completed` job without `prLink` is read again before null is accepted. @default '30s' */
  readonly prLinkTimeout?: DurationText | undefined;
  /**
   * The time after the POST for which a response may describe the job before the message. No terminal status is accepted earlier.
   * @default '30s'
   */
  readonly maxStaleness?: DurationText | undefined;
}

/** The next interval is `growth` × the turn's age, at least `initial` and at most `maximum`, ± `jitter`. */
export interface PollingRequest {
  /** The shortest interval between polls, at least 100ms. @default '5s' */
  readonly initial?: DurationText | undefined;
  /** The interval as a share of the turn's age, from 0 to 10. With 0, every interval is `initial`. @default 0.1 */
  readonly growth?: number | undefined;
  /** The longest interval between polls, not below `initial`. @default '5m' */
  readonly maximum?: DurationText | undefined;
  /** The share by which every interval varies at random, from 0 to 0.5. The maximum interval varies too. @default 0.1 */
  readonly jitter?: number | undefined;
  /**
   * The number of first polls that are a durable timer and a read activity each. Later polls are retries of one activity.
   * @default 2
   */
  readonly timerPolls?: number | 'all' | undefined;
}

const isPolling = objectOf({
  initialMs: number,
  growth: number,
  maximumMs: number,
  jitter: number,
  timerPolls: unionOf(literalOf('all'), count),
});
export type Polling = Checked<typeof isPolling>;

/** A checked request with its defaults and without its message. Durations are in milliseconds. */
export const isPlanWithoutPrompt = objectOf({
  projectId: text,
  jobId: text,
  /** The request ID, or the workflow ID if the request has no request ID. */
  requestId: text,
  whenActive: literalOf(...WHEN_ACTIVE),
  onUnknownDelivery: literalOf(...ON_UNKNOWN_DELIVERY),
  deadlineMs: number,
  reconcileTimeoutMs: number,
  prLinkTimeoutMs: number,
  maxStalenessMs: number,
  polling: isPolling,
});
export type FollowUpPlan = Checked<typeof isPlanWithoutPrompt> & { readonly prompt: string };

/**
 * An option of a request. Field names and values in the help are Markdown code. The help has no final period, because the CLI
 * adds the limits and the default.
 */
export type RequestOption = { readonly help: string } & (
  | { readonly kind: 'choice'; readonly choices: readonly string[]; readonly default: string }
  | { readonly kind: 'duration'; readonly default: DurationText; readonly minimumMs?: number }
  | { readonly kind: 'number'; readonly default: number; readonly minimum: number; readonly maximum: number }
  /** A whole number from 0 to `maximum`, or `all`. */
  | { readonly kind: 'count'; readonly default: number; readonly maximum: number }
);

/** The minimum of a poll interval. Each poll with a durable timer costs the Temporal server CPU time (docs/performance.md). */
const MIN_POLLING_MS = 100;

export const REQUEST_IDENTITY = {
  // `shortName` is the name of the CLI flag and of the column in an input file.
  projectId: {
    kind: 'id',
    required: true,
    shortName: 'project',
    help: 'the ID of the project that has the job',
  },
  jobId: {
    kind: 'id',
    required: true,
    shortName: 'job',
    help: 'the ID of the job that receives the message',
  },
  prompt: { kind: 'prompt', required: true, help: 'the message, which is sent unaltered' },
  requestId: {
    kind: 'name',
    required: false,
    help: "the caller's idempotency key. The same request ID is the same follow-up, and its message is not sent again",
  },
} as const;

/**
 * The options of a request. The check, the flags, the help, the JSON Schema and the docs are made from this table
 * (docs/architecture.md). `FollowUpRequest` and `FollowUpPlan` have a property for each option. In the plan, the name of a
 * duration ends in `Ms`.
 */
export const REQUEST_OPTIONS = {
  whenActive: {
    kind: 'choice',
    choices: WHEN_ACTIVE,
    default: 'wait',
    help:
      'the behavior if the job is not idle before the send. With `wait`, the follow-up waits until the job is idle, and the ' +
      'job lock serializes follow-ups to one job. With `send`, the message is sent into the running turn. With `reject`, the ' +
      'follow-up ends, and nothing is sent',
  },
  onUnknownDelivery: {
    kind: 'choice',
    choices: ON_UNKNOWN_DELIVERY,
    default: 'fail',
    help:
      'the behavior if it is unknown whether the message arrived. With `fail`, the follow-up ends. With `assume-delivered`, ' +
      'the watch starts. With `resend`, the follow-up makes at most one further POST, and then acts as with `fail`. With ' +
      "`ask`, the follow-up waits for an operator's decision",
  },
  deadline: {
    kind: 'duration',
    default: '24h',
    help:
      "the maximum time from the workflow's start (after its start delay) to the end of the watch. At the deadline, " +
      'the follow-up stops a send that is not permitted yet. A POST that was permitted right before may start up to ten ' +
      'seconds later. The deadline must be longer than `maxStaleness`',
  },
  reconcileTimeout: {
    kind: 'duration',
    default: '2m',
    help:
      'the time after the POST for which the job is read to find out whether a message of unknown delivery arrived. After ' +
      'this time, `onUnknownDelivery` decides',
  },
  prLinkTimeout: {
    kind: 'duration',
    default: '30s',
    help:
      'the time for which a `completed` job without `prLink` is read again. After this time, the job is the result, and its ' +
      '`prLink` is null',
  },
  maxStaleness: {
    kind: 'duration',
    default: '30s',
    help:
      'the time after the POST for which a read may still return the old state of the job. No terminal status is accepted ' +
      'earlier. If no read proves that the terminal status is new, the status must then stay the same for a second ' +
      '`maxStaleness`',
  },
  'polling.initial': {
    kind: 'duration',
    default: '5s',
    minimumMs: MIN_POLLING_MS,
    help: 'the shortest interval between polls. The minimum is 100ms',
  },
  'polling.growth': {
    kind: 'number',
    default: 0.1,
    minimum: 0,
    maximum: 10,
    help: "the interval between polls is this value × the turn's age. With `0.1`, a turn of 10 minutes is polled every minute",
  },
  'polling.maximum': {
    kind: 'duration',
    default: '5m',
    minimumMs: MIN_POLLING_MS,
    help: 'the longest interval between polls. The value must not be below `polling.initial`',
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
    // A larger number would fill the history, because each of these polls takes 11 events.
    maximum: 1_000,
    help:
      'the number of first polls that the history shows, each as a timer and a read activity: 0 to 1000, or `all`. Later ' +
      'polls are retries of one activity',
  },
} as const satisfies Readonly<Record<string, RequestOption>>;

/** The fields of a request, in the order in which docs and help show them. */
export const REQUEST_FIELDS = { ...REQUEST_IDENTITY, ...REQUEST_OPTIONS };
export type RequestField = keyof typeof REQUEST_FIELDS;
export type RequestRow = RequestOption | (typeof REQUEST_IDENTITY)[keyof typeof REQUEST_IDENTITY];

export function toPlanFieldName(field: string, { kind }: { readonly kind: string }): string {
  return kind === 'duration' ? `${field}Ms` : field;
}

/** Returns the options of a checked request in the form in which a caller writes them. */
export function optionTexts(plan: FollowUpPlan): [option: string, text: string][] {
  return Object.entries<RequestOption>(REQUEST_OPTIONS).map(([name, option]) => {
    const value = getField({ ...plan }, toPlanFieldName(name, option));
    return [name, option.kind === 'duration' ? durationText(Number(value)) : String(value)];
  });
}

/**
 * Returns the value of a field of an unchecked request. The result is also undefined for a field that is null.
 *
 * @param field such as `polling.initial`
 */
export function getField(request: JsonObject, field: string): unknown {
  const [name = '', inner] = field.split('.');
  const value = request[name];
  if (inner === undefined) return value ?? undefined;
  return isRecord(value) ? (value[inner] ?? undefined) : undefined;
}

/** Builds an unchecked request from fields. Fields that are undefined or null are omitted. */
export function buildRequest(fields: Iterable<readonly [field: string, value: unknown]>): JsonObject {
  const request: Record<string, unknown> = {};
  for (const [field, value] of fields) {
    if (value === undefined || value === null) continue;
    const [name = '', inner] = field.split('.');
    request[name] = inner === undefined ? value : { ...(request[name] as object), [inner]: value };
  }
  return request;
}
