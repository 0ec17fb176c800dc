import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { ApplicationFailure, DefaultFailureConverter, defaultPayloadConverter } from '@temporalio/common';
import { digestOf } from '../core/ids';
import { type AgentJob, isTerminal, type TerminalStatus } from '../core/job';
import { MEMO_RECEIPT, UPDATE_EXTEND_DEADLINE, UPDATE_RESOLVE_DELIVERY } from '../core/names';
import type { FailureDetails, FailureType, FollowUpProgress, Phase, Receipt, Verdict } from '../core/result';
import { parseDuration } from '../core/units';
import { msNumberToTs } from '../temporal/sdk-internals';
import { type NamedRequest, planOf } from './start';

/** What becomes of a follow-up. */
export interface Fate extends Pick<FailureDetails, 'httpStatus' | 'serviceMessage'> {
  /** @default 'completed' */
  readonly end?: TerminalStatus | FailureType | 'cancelled' | 'terminated' | 'timed-out';
  /** In place of an end: it stays in this phase until it is given another fate. */
  readonly phase?: Phase | undefined;
  /** The last job that was seen. @default one with the request's id, and a link where it is completed */
  readonly job?: Partial<AgentJob>;
  /** Whether the message arrived. @default what is usual for the end or the phase */
  readonly verdict?: Verdict;
  /** The words of a failure. */
  readonly message?: string;
}

type Service = Client['workflowService'];
export type Start = Parameters<Service['startWorkflowExecution']>[0];
export type Update = Parameters<Service['updateWorkflowExecution']>[0];

/* Values of Temporal's API. */
const RUNNING = 1;
export const COMPLETED = 2;
const FAILED = 3;
const STATUS: Partial<Record<string, number>> = { cancelled: 4, terminated: 5, 'timed-out': 7 };
const UPDATE_COMPLETED = 3;

/** Elsewhere the message was accepted. */
const USUAL: Partial<Record<string, Verdict>> = {
  baseline: 'not-sent',
  waiting: 'not-sent',
  InvalidRequest: 'not-sent',
  JobNotFound: 'not-sent',
  FollowUpRejected: 'rejected',
  DeliveryUnknown: 'unknown',
  'needs-decision': 'unknown',
};

/** One run of a follow-up, as its worker and the server would have it. */
export class Run {
  readonly runId = randomUUID();
  readonly request: NamedRequest;
  /** The last event of its history. */
  readonly ended: Promise<object>;
  private fate: Fate = { phase: 'baseline' };
  private readonly startedAt = Date.now();
  private endedAt: number | null = null;
  private deadlineAt: number;
  private resent = 0;
  private wake: (closed: object) => void = () => undefined;

  constructor(readonly start: Start) {
    this.request = defaultPayloadConverter.fromPayload(start.input?.payloads?.[0] ?? {});
    this.deadlineAt = this.startedAt + planOf(this.request).deadlineMs;
    this.ended = new Promise((resolve) => (this.wake = resolve));
  }

  /** Undefined while it runs. */
  private get end(): NonNullable<Fate['end']> | undefined {
    return this.fate.phase === undefined ? (this.fate.end ?? 'completed') : undefined;
  }

  get status(): number {
    if (this.end === undefined) return RUNNING;
    return isTerminal(this.end) ? COMPLETED : (STATUS[this.end] ?? FAILED);
  }

  settle(fate: Fate): void {
    if (this.end !== undefined) throw new Error(`The follow-up ${this.start.workflowId ?? ''} has ended.`);
    this.fate = fate;
    if (fate.phase !== undefined) return;
    this.endedAt = Date.now();
    this.wake(this.closed());
  }

  cancel(): void {
    this.settle({ ...this.fate, phase: undefined, end: 'cancelled', verdict: this.receipt.delivery.verdict });
  }

  get receipt(): Receipt {
    const { fate, end, resent, request, endedAt } = this;
    const verdict = fate.verdict ?? USUAL[end ?? fate.phase ?? ''] ?? 'accepted';
    const wasSent = verdict !== 'not-sent';
    const isResult = this.status === COMPLETED;
    return {
      requestId: request.requestId,
      delivery: {
        verdict,
        confirmedBy: verdict === 'accepted' ? 'response' : null,
        sends: (wasSent ? 1 : 0) + resent,
      },
      evidence: isResult ? 'seen-active' : null,
      baseline: wasSent ? { status: 'completed', prLink: null, archivedAt: null } : null,
      promptDigest: digestOf(request.prompt),
      polls: isResult ? 1 : 0,
      sentAt: wasSent ? isoTime(this.startedAt) : null,
      settledAt: endedAt === null ? null : isoTime(endedAt),
      observed: isResult ? { [end ?? '']: 1 } : {},
    };
  }

  private get job(): AgentJob {
    const { end = '', request, fate } = this;
    const status = isTerminal(end) ? end : 'active';
    const prLink = end === 'completed' ? `https://example.test/pull/${request.jobId}` : null;
    const source = { repository: null, ref: null };
    const nothing = { source, model: null, createdAt: null, archivedAt: null };
    return { id: request.jobId, status, prLink, ...nothing, ...fate.job };
  }

  private get phase(): Phase {
    const ended = this.status === COMPLETED ? 'done' : 'failed';
    return this.fate.phase ?? (this.end === 'cancelled' ? 'cancelled' : ended);
  }

  progress(): FollowUpProgress {
    const { delivery, evidence, observed, polls } = this.receipt;
    const times = { nextPollAt: null, deadlineAt: isoTime(this.deadlineAt), lastAnswer: null };
    return { phase: this.phase, job: this.job, delivery, evidence, observed, polls, ...times };
  }

  update({ request }: Pick<Update, 'request'>) {
    const { name, args } = request?.input ?? {};
    const argument = args?.payloads?.[0];
    const refused = this.take(name, argument ? defaultPayloadConverter.fromPayload(argument) : null);
    const outcome = refused
      ? { failure: failureOf(refused, 'Refused') }
      : { success: payloads(this.progress()) };
    return { stage: UPDATE_COMPLETED, updateRef: { workflowExecution: { runId: this.runId } }, outcome };
  }

  /** @returns why an update is refused */
  private take(name: string | null | undefined, argument: unknown): string | undefined {
    if (name === UPDATE_EXTEND_DEADLINE) {
      const duration = parseDuration(argument);
      if ('problem' in duration) return duration.problem;
      this.deadlineAt = Math.max(this.deadlineAt, Date.now() + duration.ms);
    } else if (name === UPDATE_RESOLVE_DELIVERY) {
      if (this.phase !== 'needs-decision') return 'no decision is needed';
      if (argument === 'not-delivered') this.resent += 1;
      this.settle({ ...this.fate, phase: 'watching', verdict: 'accepted' });
    }
    return undefined;
  }

  info() {
    const { start, runId, endedAt } = this;
    const indexedFields = { ...start.searchAttributes?.indexedFields };
    const data = Buffer.from(JSON.stringify(this.phase));
    const receipt = { [MEMO_RECEIPT]: defaultPayloadConverter.toPayload(this.receipt) };
    return {
      execution: { workflowId: start.workflowId, runId },
      type: start.workflowType,
      taskQueue: start.taskQueue?.name,
      startTime: msNumberToTs(this.startedAt),
      ...(endedAt !== null && { closeTime: msNumberToTs(endedAt) }),
      historyLength: { toNumber: () => 2 },
      status: this.status,
      memo: { fields: { ...start.memo?.fields, ...(this.end === 'cancelled' && receipt) } },
      searchAttributes: {
        indexedFields: { ...indexedFields, FollowUpPhase: { ...indexedFields.FollowUpPhase, data } },
      },
    };
  }

  started() {
    return { workflowExecutionStartedEventAttributes: { input: this.start.input } };
  }

  private closed() {
    const { end = '', receipt: followUp, fate } = this;
    const { httpStatus, serviceMessage, message = 'The test says so.' } = fate;
    if (this.status === COMPLETED)
      return { workflowExecutionCompletedEventAttributes: { result: payloads({ ...this.job, followUp }) } };
    if (end === 'cancelled') return { workflowExecutionCanceledEventAttributes: {} };
    if (end === 'terminated') return { workflowExecutionTerminatedEventAttributes: { reason: message } };
    if (end === 'timed-out') return { workflowExecutionTimedOutEventAttributes: {} };
    const details = { job: fate.job ? this.job : null, followUp, httpStatus, serviceMessage };
    return { workflowExecutionFailedEventAttributes: { failure: failureOf(message, end, details) } };
  }
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

export function payloads(value: unknown) {
  return { payloads: [defaultPayloadConverter.toPayload(value)] };
}

function failureOf(message: string, type: string, ...details: unknown[]) {
  const failure = ApplicationFailure.nonRetryable(message, type, ...details);
  return new DefaultFailureConverter().errorToFailure(failure, defaultPayloadConverter);
}
