import type { Client } from '@temporalio/client';
import { ApplicationFailure, DefaultFailureConverter, defaultPayloadConverter } from '@temporalio/common';
import { digestOf } from '../core/ids';
import { type AgentJob, isTerminal, type TerminalStatus } from '../core/job';
import { MEMO_RECEIPT, UPDATE_EXTEND_DEADLINE, UPDATE_RESOLVE_DELIVERY } from '../core/names';
import {
  DELIVERY_DECISIONS,
  type FailureDetails,
  type FailureType,
  type FollowUpProgress,
  type Phase,
  type Receipt,
  type Verdict,
} from '../core/result';
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
  readonly message?: string;
}

type Service = Client['workflowService'];
export type Start = Parameters<Service['startWorkflowExecution']>[0];
export type Update = Parameters<Service['updateWorkflowExecution']>[0]['request'];

/* Of Temporal's API. */
export const COMPLETED = 2;
const [RUNNING, FAILED, UPDATE_COMPLETED] = [1, 3, 3];
const STATUS: Partial<Record<string, number>> = { cancelled: 4, terminated: 5, 'timed-out': 7 };

/** Elsewhere the message was accepted. */
const USUAL: readonly (readonly [Verdict, ...string[]])[] = [
  ['not-sent', 'starting', 'waiting-for-job', 'InvalidRequest', 'JobNotFound'],
  ['rejected', 'FollowUpRejected'],
  ['unknown', 'DeliveryUnknown', 'needs-decision'],
];

/** One run of a follow-up, as its worker and the server would have it. */
export class InMemoryRun {
  readonly runId = crypto.randomUUID();
  readonly request: NamedRequest;
  /** The last event of its history. */
  readonly ended: Promise<object>;
  private fate: Fate = { phase: 'starting' };
  private resent = 0;
  private readonly startedAt = new Date();
  private endedAt: Date | null = null;
  private deadlineAt: number;
  private wake: (closed: object) => void = () => undefined;

  constructor(readonly start: Start) {
    this.request = defaultPayloadConverter.fromPayload(start.input?.payloads?.[0] ?? {});
    this.deadlineAt = Date.now() + planOf(this.request).deadlineMs;
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
    this.endedAt = new Date();
    this.wake(this.closed());
  }

  cancel(): object {
    this.settle({ ...this.fate, phase: undefined, end: 'cancelled', verdict: this.receipt.delivery.verdict });
    return {};
  }

  get receipt(): Receipt {
    const { fate, end, request, endedAt } = this;
    const [usual = 'accepted'] = USUAL.find((row) => row.includes(end ?? fate.phase ?? '')) ?? [];
    const { verdict = usual } = fate;
    const wasSent = verdict !== 'not-sent';
    const confirmedBy = verdict === 'accepted' ? 'response' : null;
    return {
      requestId: request.requestId,
      delivery: { verdict, confirmedBy, sends: Number(wasSent) + this.resent },
      evidence: this.status === COMPLETED ? 'seen-active' : null,
      baseline: wasSent ? { status: 'completed', prLink: null, archivedAt: null } : null,
      promptDigest: digestOf(request.prompt),
      polls: 0,
      sentAt: wasSent ? this.startedAt.toISOString() : null,
      endedAt: endedAt?.toISOString() ?? null,
      responseCounts: {},
    };
  }

  private get job(): AgentJob {
    const { end = '', request, fate } = this;
    const status = isTerminal(end) ? end : 'active';
    const prLink = end === 'completed' ? `https://example.test/pull/${request.jobId}` : null;
    const source = { repository: null, ref: null };
    const unknown = { source, model: null, createdAt: null, archivedAt: null };
    return { id: request.jobId, status, prLink, ...unknown, ...fate.job };
  }

  private get phase(): Phase {
    if (this.end === 'cancelled') return this.end;
    return this.fate.phase ?? (this.status === COMPLETED ? 'done' : 'failed');
  }

  progress(): FollowUpProgress {
    const { delivery, evidence, responseCounts, polls } = this.receipt;
    const deadlineAt = new Date(this.deadlineAt).toISOString();
    const seen = { delivery, evidence, responseCounts, polls, nextPollAt: null, lastResponse: null };
    return { phase: this.phase, job: this.job, deadlineAt, ...seen };
  }

  update(update: Update) {
    const { name, args } = update?.input ?? {};
    const [payload] = args?.payloads ?? [];
    const refused = this.refused(name, payload && defaultPayloadConverter.fromPayload(payload));
    const failure = refused === undefined ? undefined : failureOf(refused, 'Refused');
    const outcome = failure ? { failure } : { success: payloads(this.progress()) };
    return { stage: UPDATE_COMPLETED, updateRef: { workflowExecution: { runId: this.runId } }, outcome };
  }

  /** Carries an update out, or says why not. */
  private refused(name: unknown, argument: unknown): string | undefined {
    if (name === UPDATE_EXTEND_DEADLINE) {
      const duration = parseDuration(argument);
      if ('problem' in duration) return duration.problem;
      this.deadlineAt = Math.max(this.deadlineAt, Date.now() + duration.ms);
    }
    if (name !== UPDATE_RESOLVE_DELIVERY) return undefined;
    if (this.phase !== 'needs-decision') return 'no decision is needed';
    if (!DELIVERY_DECISIONS.some((each) => each === argument))
      return `decision: must be one of ${DELIVERY_DECISIONS.join(', ')}`;
    this.resent += argument === 'not-delivered' ? 1 : 0;
    this.settle({ ...this.fate, phase: 'watching', verdict: 'accepted' });
    return undefined;
  }

  info() {
    const { start, runId, endedAt, end = '' } = this;
    const { FollowUpPhase, ...indexedFields } = { ...start.searchAttributes?.indexedFields };
    const attribute = (value: unknown, type = 'Keyword') => ({
      metadata: { ...FollowUpPhase?.metadata, type: Buffer.from(type) },
      data: Buffer.from(JSON.stringify(value)),
    });
    const receipt = { [MEMO_RECEIPT]: defaultPayloadConverter.toPayload(this.receipt) };
    const attributes = {
      FollowUpPhase: attribute(this.phase),
      ...(isTerminal(end) && { AgentJobStatus: attribute(this.job.status) }),
      ...(!['', 'terminated', 'timed-out'].includes(end) && {
        FollowUpOutcome: attribute([end, this.receipt.delivery.verdict], 'KeywordList'),
      }),
    };
    return {
      execution: { workflowId: start.workflowId, runId },
      type: start.workflowType,
      taskQueue: start.taskQueue?.name,
      startTime: msNumberToTs(this.startedAt.getTime()),
      ...(endedAt !== null && { closeTime: msNumberToTs(endedAt.getTime()) }),
      historyLength: { toNumber: () => 2 },
      status: this.status,
      memo: { fields: { ...start.memo?.fields, ...(this.end === 'cancelled' && receipt) } },
      searchAttributes: { indexedFields: { ...indexedFields, ...attributes } },
    };
  }

  private closed() {
    const { end = '', receipt, fate } = this;
    const { httpStatus, serviceMessage, message = 'The test says so.' } = fate;
    if (this.status === COMPLETED)
      return { workflowExecutionCompletedEventAttributes: { result: payloads({ ...this.job, receipt }) } };
    if (end === 'cancelled') return { workflowExecutionCanceledEventAttributes: {} };
    if (end === 'terminated') return { workflowExecutionTerminatedEventAttributes: { reason: message } };
    if (end === 'timed-out') return { workflowExecutionTimedOutEventAttributes: {} };
    const details = { job: fate.job ? this.job : null, receipt, httpStatus, serviceMessage };
    return { workflowExecutionFailedEventAttributes: { failure: failureOf(message, end, details) } };
  }
}

export function payloads(value: unknown) {
  return { payloads: [defaultPayloadConverter.toPayload(value)] };
}

function failureOf(message: string, type: string, ...details: unknown[]) {
  const failure = ApplicationFailure.nonRetryable(message, type, ...details);
  return new DefaultFailureConverter().errorToFailure(failure, defaultPayloadConverter);
}
