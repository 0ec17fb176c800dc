import {
  type JobLockHolder,
  createUnreportedOutcome,
  type PostOutcome,
  type SendOutcome,
} from '../../src/contract/send-result';
import { type JobResponse } from '../../src/contract/activities';
import { type RequestFailure } from '../../src/contract/request-failure';
import type { AgentJob } from '../../src/contract/job';
import type { FollowUpPlan } from '../../src/contract/request';
import { apply, type FollowUpEvent } from '../../src/follow-up/apply';
import { nextStep } from '../../src/follow-up/next-step';
import { initialState } from '../../src/follow-up/initial-state';
import type { FollowUpState } from '../../src/follow-up/state';
import type { Step } from '../../src/follow-up/step';
import { JOB } from '../harness/fixtures';

/*
 * States of a follow-up for table tests. In every state, the workflow starts at 0 s, and the deadline is at 3,600 s. The send starts
 * at 99 s and ends at 100 s. `maxStaleness` is 30 s, so a read is fresh from 130 s on.
 */

export const RUN_ID = 'run-1';
const START = 0;
export const SEND_ENDS = 100;
export const FRESH_FROM = 130;
export const DEADLINE = 3_600;

export function ms(seconds: number): number {
  return seconds * 1_000;
}

export const PLAN: FollowUpPlan = {
  projectId: 'docs',
  jobId: 'j',
  prompt: 'Hello',
  requestId: 'r',
  whenActive: 'wait',
  onUnknownDelivery: 'fail',
  deadlineMs: ms(DEADLINE),
  reconcileTimeoutMs: ms(120),
  prLinkTimeoutMs: ms(20),
  maxStalenessMs: ms(30),
  polling: { initialMs: 5_000, growth: 0.1, maximumMs: 300_000, jitter: 0, timerPolls: 2 },
};

export const LINK = 'https://code.example/pull/1';

/** Makes a job from its description: `active`, `completed+link`, or `archived+time` with the time at which the job was archived. */
export function job(description: string): AgentJob {
  const [status = '', extra] = description.split('+');
  const prLink = extra === 'link' ? LINK : null;
  const archivedAt = extra === 'time' ? '2026-01-02T00:00:00Z' : null;
  return { ...JOB, status, prLink, archivedAt };
}

export const HOLDER: JobLockHolder = { workflowId: 'another', firstRunId: 'run-9' };

/** The failure of a request that received a response with this HTTP status. */
export function httpFailure(httpStatus: number, more: Partial<RequestFailure> = {}): RequestFailure {
  return { label: `http_${httpStatus}`, message: `http ${httpStatus}`, httpStatus, ...more };
}

export const REFUSED: RequestFailure = { label: 'ECONNREFUSED', message: 'ECONNREFUSED' };

/** A response in short form: the description of a job, an HTTP status, or a failure. */
export type ShortResponse = string | number | RequestFailure;

function response(short: ShortResponse): JobResponse {
  if (typeof short === 'string') return { kind: 'job', job: job(short) };
  return { kind: 'failure', ...(typeof short === 'number' ? httpFailure(short) : short) };
}

/** A read of the job. Times are in milliseconds. */
interface Read {
  readonly requestedAt: number;
  /** When the response was received. */
  readonly at: number;
  readonly response: JobResponse;
}

/**
 * Makes reads from their description, for example `110 active, 130-135 completed+link, 140 503`. Each read has its time in seconds,
 * and its job or HTTP status. In the example, the second read was requested at 130 s and received its response at 135 s. The third
 * read received status 503.
 */
export function reads(description: string): Read[] {
  if (description === '') return [];
  return description.split(', ').map((read) => {
    const [times = '', short = ''] = read.split(' ');
    const [requestedAt = 0, at = requestedAt] = times.split('-').map((second) => ms(Number(second)));
    return { requestedAt, at, response: response(/^\d+$/.test(short) ? Number(short) : short) };
  });
}

/* Outcomes of a POST. */
export const ACCEPTED = { verdict: 'accepted', job: job('active') } as const satisfies PostOutcome;
export const LOST = {
  verdict: 'unknown',
  label: 'ECONNRESET',
  message: 'ECONNRESET',
} as const satisfies PostOutcome;
export const UNREPORTED = createUnreportedOutcome('the worker did not report');
export const REJECTED = { verdict: 'rejected', ...httpFailure(422) } as const satisfies PostOutcome;
export const RATE_LIMITED = {
  verdict: 'not-sent',
  reachedService: true,
  ...httpFailure(429),
} as const satisfies PostOutcome;
export const NOT_CONNECTED = {
  verdict: 'not-sent',
  reachedService: false,
  ...REFUSED,
} as const satisfies PostOutcome;

/* Outcomes of a send. */
export function posted(outcome: PostOutcome, baseline: string | null = 'completed'): SendOutcome {
  return { kind: 'posted', baseline: baseline === null ? null : job(baseline), sentAt: ms(99.5), outcome };
}

export function notReady(status: string): SendOutcome {
  return { kind: 'job-not-ready', job: job(status) };
}

export function notRead(short: number | RequestFailure): SendOutcome {
  return { kind: 'not-read', ...(typeof short === 'number' ? httpFailure(short) : short) };
}

export const POSTPONED = {
  kind: 'postponed',
  label: 'cooling_down',
  message: 'cooling down',
} as const satisfies SendOutcome;
export const LOCK_HELD: SendOutcome = { kind: 'lock-held', holder: HOLDER };
export function resetEnd(baseline: string | null): SendOutcome {
  const read = baseline === null ? null : job(baseline);
  return { kind: 'reset', baseline: read, label: 'reset', message: 'the run was reset' };
}

/* Events. */
export function sendEnded(
  outcome: SendOutcome,
  at = SEND_ENDS,
  lockRunId: string | null = null,
): FollowUpEvent & { kind: 'send ended' } {
  const times = { startedAt: ms(at - 1), at: ms(at), maxPostMs: ms(40) };
  return { kind: 'send ended', outcome, lockRunId, ...times };
}

/** A read whose response is received at `at`. Unless `requestedAt` is set, the read takes no time. */
export function readEnded(short: ShortResponse, at: number, requestedAt = at): FollowUpEvent {
  return { kind: 'read ended', response: response(short), requestedAt: ms(requestedAt), at: ms(at) };
}

/** `pollJob` made `unchangedReads` reads that returned the known job. If `last` is set, a last read returned this response. */
export function pollEnded(
  status: string,
  unchangedReads: number,
  at: number,
  last: ShortResponse | null = null,
): FollowUpEvent & { kind: 'poll ended' } {
  const differing = last === null ? null : { response: response(last), requestedAt: ms(at) };
  return { kind: 'poll ended', status, unchangedReads, last: differing, isInterrupted: false, at: ms(at) };
}

/** An operator sent `pollNow`. */
export function readRequested(at: number): FollowUpEvent {
  return { kind: 'read requested', at: ms(at) };
}

export const RECONCILED: FollowUpEvent = { kind: 'reconciling ended' };
export const CANCELLED: FollowUpEvent = { kind: 'cancelled' };
export const DELIVERED: FollowUpEvent = { kind: 'delivery decided', decision: 'delivered', runId: RUN_ID };
export const NOT_DELIVERED: FollowUpEvent = { ...DELIVERED, decision: 'not-delivered' };

/* States. */
export function play(state: FollowUpState, ...events: readonly FollowUpEvent[]): FollowUpState {
  return events.reduce((before, event) => apply(before, event), state);
}

export type PlanChanges = Partial<FollowUpPlan>;

/** A follow-up that has done nothing yet. */
export function unsent(changes: PlanChanges = {}): FollowUpState {
  const plan = { ...PLAN, ...changes };
  return initialState(plan, { startedAt: ms(START), firstRunId: RUN_ID, isReset: false });
}

/** A follow-up that has done nothing yet, in a run that a reset made. */
export function unsentAfterReset(changes: PlanChanges = {}): FollowUpState {
  return { ...unsent(changes), isReset: true };
}

/** The first send ended with this outcome at 100 s. */
export function afterSend(outcome: SendOutcome, changes: PlanChanges = {}): FollowUpState {
  return play(unsent(changes), sendEnded(outcome));
}

/** The agent service accepted the message; the baseline read returned `baseline`. */
export function accepted(baseline: string | null, changes: PlanChanges = {}): FollowUpState {
  return afterSend(posted(ACCEPTED, baseline), changes);
}

/** The POST had no response; the baseline read returned `baseline`. */
export function unknown(baseline: string | null, changes: PlanChanges = {}): FollowUpState {
  return afterSend(posted(LOST, baseline), changes);
}

/** The state after these reads. @param description see {@link reads} */
export function afterReads(state: FollowUpState, description: string): FollowUpState {
  return play(state, ...reads(description).map((read) => ({ kind: 'read ended', ...read }) as const));
}

/** An operator must decide, because a job that was active before the POST can't show whether the message arrived. */
export function needsDecision(baseline: string | null = 'active'): FollowUpState {
  return play(unknown(baseline, { onUnknownDelivery: 'ask' }), RECONCILED);
}

/** The POST may have arrived, and one further POST is allowed. */
export function resendAllowed(baseline: string | null = 'completed'): FollowUpState {
  return play(unknown(baseline, { onUnknownDelivery: 'resend' }), RECONCILED);
}

/** The one resend ended with this outcome at 230 s. */
export function afterResend(outcome: SendOutcome): FollowUpState {
  return play(resendAllowed(), sendEnded(outcome, 230));
}

/* Descriptions for the cells of a table. */

/** Describes the delivery, for example `unknown, resend permit`. */
export function describeDelivery({ delivery }: FollowUpState): string {
  switch (delivery.kind) {
    case 'unsent':
      return 'unsent';
    case 'accepted':
      return `accepted by ${delivery.confirmedBy}`;
    case 'rejected':
      return delivery.isEarlierPostUnknown ? 'rejected, an earlier POST is unknown' : 'rejected';
    case 'unknown':
      if (delivery.permit !== null) return `unknown, ${delivery.permit.kind} permit`;
      return delivery.isReconcilingOver ? 'unknown, reconciled' : 'unknown';
  }
}

/**
 * Describes the next step with its phase and time, for example `watching: read at 130`.
 *
 * @param second the current time in seconds
 * @param minWait the minimum wait in seconds; greater than 0 if the history is long
 */
export function describeStep(state: FollowUpState, second: number, { minWait = 0 } = {}): string {
  return formatStep(nextStep(state, ms(second), () => 0.5, ms(minWait)));
}

function formatStep(step: Step): string {
  const at = 'at' in step ? `${step.at / 1_000}` : '';
  switch (step.do) {
    case 'wait for job lock':
      return `${step.phase}: wait until ${step.holder.workflowId} ends`;
    case 'send':
      return `${step.phase}: send at ${at}, ${step.permit.kind} permit`;
    case 'read':
      return `${step.phase}: read at ${at}`;
    case 'poll':
      return `${step.phase}: poll ${step.lastState.status} from ${at} to ${step.decidesAt / 1_000}`;
    case 'conclude reconciling':
      return `${step.phase}: conclude`;
    case 'end':
      if (step.outcome.kind === 'result')
        return `${step.phase}: ${step.outcome.job.status}, ${step.outcome.evidence}`;
      return step.outcome.kind === 'failure' ? `${step.phase}: ${step.outcome.type}` : step.phase;
  }
}
