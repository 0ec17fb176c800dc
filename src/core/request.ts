import type { DurationText } from './units';

/** What happens if the job is not in a terminal status before the send. */
export const WHEN_ACTIVE = ['send', 'wait', 'reject'] as const;
export type WhenActive = (typeof WHEN_ACTIVE)[number];

/** What happens if nobody can tell whether the message arrived. */
export const ON_UNKNOWN_DELIVERY = ['fail', 'assume-delivered', 'resend', 'ask'] as const;
type OnUnknownDelivery = (typeof ON_UNKNOWN_DELIVERY)[number];

/**
 * The input of the workflow `followUp`: one message to one agent job. Bounds and defaults are those of `REQUEST_OPTIONS`.
 *
 * Fields other than these are refused, so that a misspelt option is an error and not a default.
 */
export interface FollowUpRequest {
  /** The project that owns the job: 1 to 128 characters; not `.` or `..`, no control characters, no lone surrogates. */
  readonly projectId: string;
  /** The job that receives the message. Same rules as `projectId`. */
  readonly jobId: string;
  /** The message, sent unaltered: 1 character to 256 KiB of UTF-8. */
  readonly prompt: string;
  /**
   * The caller's name for this follow-up, up to 128 characters. The same name is the same follow-up: its message is
   * never sent a second time.
   *
   * @default the workflow id as given
   */
  readonly requestId?: string;
  /** @default 'send' */
  readonly whenActive?: WhenActive;
  /** @default 'fail' */
  readonly onUnknownDelivery?: OnUnknownDelivery;
  /** From the first task of the workflow to the end of the watch; more than `confirm`. @default '24h' */
  readonly deadline?: DurationText;
  readonly polling?: PollingRequest;
  /** How long an unknown delivery is looked for by reading the job, before `onUnknownDelivery` decides. @default '2m' */
  readonly reconcile?: DurationText;
  /** How long a `completed` job without `prLink` is re-read before null is believed. @default '30s' */
  readonly settle?: DurationText;
  /**
   * The bound that is assumed for the lag of a read and for the time in which a message is taken up, both together. No
   * terminal status that was asked for earlier after the POST is believed. One that nothing shows to be new must hold for as
   * long again. `0s` for a service that has neither.
   *
   * @default '30s'
   */
  readonly confirm?: DurationText;
}

/** The cadence of polling: the next interval is `growth` × the turn's age, within bounds, ± `jitter`. */
export interface PollingRequest {
  /** The shortest interval, and the interval of reads that confirm. At least 100ms. @default '5s' */
  readonly initial?: DurationText;
  /** The share of the turn's age that the next interval is: 0 (always `initial`) to 10. @default 0.1 */
  readonly growth?: number;
  /** The longest interval; not below `initial`. @default '5m' */
  readonly maximum?: DurationText;
  /** The share by which an interval is varied at random, at the maximum too: 0 to 0.5. @default 0.1 */
  readonly jitter?: number;
  /**
   * How many of the first polls are a durable timer and an activity each, which the history shows one by one: 0 to 1,000,
   * or `all`. After them, and as long as the job stays as it is, one activity reads on by the same cadence and adds no
   * event.
   *
   * @default 3
   */
  readonly timerPolls?: TimerPolls;
}

export type TimerPolls = number | 'all';

/** A checked request with every default filled in; durations in milliseconds. */
export interface FollowUpPlan {
  readonly projectId: string;
  readonly jobId: string;
  readonly prompt: string;
  /** The name of the follow-up: `requestId`, or the workflow id if the caller left it out. */
  readonly requestId: string;
  readonly whenActive: WhenActive;
  readonly onUnknownDelivery: OnUnknownDelivery;
  readonly deadlineMs: number;
  readonly polling: Polling;
  readonly reconcileMs: number;
  readonly settleMs: number;
  readonly confirmMs: number;
}

/** A {@link PollingRequest} with defaults filled in. */
export interface Polling {
  readonly initialMs: number;
  readonly growth: number;
  readonly maximumMs: number;
  readonly jitter: number;
  readonly timerPolls: TimerPolls;
}
