import type { JobResponse } from '../contract/activities';
import type { RequestFailure } from '../contract/request-failure';
import type { SendOutcome } from '../contract/send-result';
import { ACTIVE_STATUS, type AgentJob, isTerminal, type TerminalStatus } from '../contract/job';
import type { FailureDetails, FailureType, Phase, Verdict } from '../contract/result';
import type { FollowUpState } from '../follow-up/state';
import type { Step } from '../follow-up/step';

/**
 * The outcome that a test gives to a follow-up. The simulation runs the workflow's own decision code until it reaches this
 * outcome, so phase, receipt and error are real.
 */
export interface SimulatedOutcome extends Pick<FailureDetails, 'httpStatus' | 'serviceMessage'> {
  /** How the follow-up ends. @default 'completed' */
  readonly end?: TerminalStatus | FailureType | 'cancelled' | 'terminated' | 'timed-out';
  /**
   * If set, the follow-up does not end by itself. It stays in this phase until the test sets another outcome, or a call such as
   * `cancel` or `resolveDelivery` changes it.
   */
  readonly phase?: Exclude<Phase, 'done' | 'failed' | 'cancelled'> | undefined;
  /** Fields of the last job that the follow-up reads. @default a job with the request's ID and, if completed, a link */
  readonly job?: Partial<AgentJob>;
  /** The delivery's verdict. @default the usual verdict for the end or the phase */
  readonly verdict?: Verdict;
  /** The failure's message. @default the same message as from the workflow */
  readonly message?: string;
}

/** How the simulated agent service behaves. */
export interface Script {
  readonly send: SendOutcome;
  /** If true, the agent works on a message that was sent, and the first read after the POST returns `active`. */
  readonly hasTurn: boolean;
  /** The response to every other read. */
  readonly read: JobResponse;
  /** The options of the request that the outcome needs. */
  readonly plan: Partial<Pick<FollowUpState['plan'], 'onUnknownDelivery' | 'whenActive'>>;
  /** The deadline passes while the delivery is in this state. Null if the deadline does not pass. */
  readonly deliveryAtDeadline: FollowUpState['delivery']['kind'] | null;
}

/** The default verdict of phases and ends. For every other phase or end, the default is `accepted`. */
const DEFAULT_VERDICTS: readonly (readonly [Verdict, ...string[]])[] = [
  ['not-sent', 'starting', 'waiting-for-job', 'sending', 'unauthorized', 'InvalidRequest', 'JobNotFound'],
  ['rejected', 'FollowUpRejected'],
  ['unknown', 'DeliveryUnknown', 'reconciling', 'needs-decision'],
];

const DELIVERY_KINDS = {
  'not-sent': 'unsent',
  accepted: 'accepted',
  unknown: 'unknown',
  rejected: 'rejected',
} as const;

/** Plans the responses of the simulated agent service that lead to an outcome. @param jobId the request's job ID */
export function scriptFromOutcome(outcome: SimulatedOutcome, jobId: string): Script {
  const { phase } = outcome;
  const end = phase === undefined ? (outcome.end ?? 'completed') : undefined;
  const name = phase ?? end ?? '';
  const [defaultVerdict = 'accepted'] = DEFAULT_VERDICTS.find((row) => row.includes(name)) ?? [];
  const verdict = outcome.verdict ?? defaultVerdict;
  return {
    send: simulateSend(name, verdict, outcome, jobId),
    hasTurn: verdict === 'accepted' && name !== 'confirming' && name !== 'JobNotFound',
    read: simulateRead(name, verdict, outcome, jobId),
    plan: {
      ...(name === 'waiting-for-job' && { whenActive: 'wait' }),
      ...(name === 'DeliveryUnknown' && { onUnknownDelivery: 'fail' }),
      ...(name === 'needs-decision' && { onUnknownDelivery: 'ask' }),
    },
    deliveryAtDeadline: name === 'DeadlineExceeded' ? DELIVERY_KINDS[verdict] : null,
  };
}

/** Returns the response to a read while the follow-up is in this state. */
export function respond(script: Script, state: FollowUpState, jobId: string): JobResponse {
  const { delivery, waitingForJob } = state;
  const reads = 'reads' in delivery ? delivery.reads : null;
  // An earlier outcome left the follow-up waiting for the job. The job becomes idle, so that the send can follow.
  if (waitingForJob !== null && script.send.kind !== 'job-not-ready') return jobResponse(idleJob(jobId));
  return script.hasTurn && reads?.hasSeenActive === false ? jobResponse(activeJob(jobId)) : script.read;
}

/** Returns whether the follow-up has the outcome, or has reached the state in which a client or a timeout ends it. */
export function hasReachedOutcome(
  { end = 'completed', phase, verdict }: SimulatedOutcome,
  step: Step,
): boolean {
  if (step.do === 'end') return true;
  if (phase !== undefined) return step.phase === phase;
  if (end !== 'cancelled' && end !== 'terminated' && end !== 'timed-out') return false;
  const before = {
    'not-sent': 'starting',
    unknown: 'reconciling',
    accepted: 'watching',
    rejected: '',
  } as const;
  return step.phase === before[verdict ?? 'accepted'];
}

function simulateSend(name: string, verdict: Verdict, outcome: SimulatedOutcome, jobId: string): SendOutcome {
  const baseline = idleJob(jobId);
  const posted = { kind: 'posted', baseline, sentAt: 0 } as const;
  switch (verdict) {
    case 'accepted':
      return { ...posted, outcome: { verdict, job: activeJob(jobId, outcome.job) } };
    case 'unknown':
      return { ...posted, outcome: { verdict, label: 'ECONNRESET', message: 'ECONNRESET' } };
    case 'rejected':
      return { ...posted, outcome: { verdict, ...failure(outcome, 422) } };
    case 'not-sent':
      return simulateUnsentSend(name, outcome, jobId);
  }
}

function simulateUnsentSend(name: string, outcome: SimulatedOutcome, jobId: string): SendOutcome {
  switch (name) {
    case 'waiting-for-job':
      return { kind: 'job-not-ready', job: activeJob(jobId, outcome.job) };
    case 'sending':
      return { kind: 'postponed', ...failure(outcome, 429), job: idleJob(jobId) };
    case 'unauthorized':
      return { kind: 'not-read', ...failure(outcome, 401) };
    case 'JobNotFound':
      return { kind: 'not-read', ...failure(outcome, 404) };
    case 'FollowUpRejected':
      return { kind: 'not-read', ...failure(outcome, 403) };
    default:
      return { kind: 'not-read', ...failure(outcome, 503) };
  }
}

function simulateRead(name: string, verdict: Verdict, outcome: SimulatedOutcome, jobId: string): JobResponse {
  if (name === 'JobNotFound') return { kind: 'failure', ...failure(outcome, 404) };
  if (isTerminal(name)) {
    const prLink = name === 'completed' ? `https://example.test/pull/${jobId}` : null;
    return jobResponse({ ...idleJob(jobId), status: name, prLink, ...outcome.job });
  }
  // An active job would show that a message of unknown delivery arrived.
  const isIdle = verdict === 'unknown' || name === 'confirming' || name === 'waiting-for-link';
  const job = isIdle ? idleJob(jobId) : activeJob(jobId);
  return jobResponse({ ...job, ...outcome.job });
}

function failure({ httpStatus, serviceMessage }: SimulatedOutcome, defaultStatus: number): RequestFailure {
  const status = httpStatus ?? defaultStatus;
  const message = `http ${status}${serviceMessage === undefined ? '' : `: ${serviceMessage}`}`;
  return { label: `http_${status}`, message, httpStatus: status, serviceMessage };
}

function jobResponse(job: AgentJob): JobResponse {
  return { kind: 'job', job };
}

function idleJob(id: string): AgentJob {
  const source = { repository: null, ref: null };
  return { id, status: 'completed', source, model: null, prLink: null, createdAt: null, archivedAt: null };
}

export function activeJob(id: string, job: Partial<AgentJob> = {}): AgentJob {
  return { ...idleJob(id), ...job, status: ACTIVE_STATUS, prLink: null, archivedAt: null };
}
