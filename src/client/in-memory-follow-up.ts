import type { DeliveryDecision, FollowUpProgress, Receipt } from '../contract/result';
import { apply, type FollowUpEvent } from '../follow-up/apply';
import { createInvalidRequestParts, toOutcomeName } from '../follow-up/failure-details';
import { nextStep } from '../follow-up/next-step';
import { toFollowUpProgress, toReceipt, reportedDelivery } from '../follow-up/receipt';
import { endWithFailure } from '../follow-up/end-step';
import { initialState, type RunStart } from '../follow-up/initial-state';
import type { FollowUpState } from '../follow-up/state';
import type { Step } from '../follow-up/step';
import type { FollowUpDescription } from './description';
import { forcedRunOutcome, outcomeFromEngine, failedRunOutcome, type RunOutcome } from './in-memory-outcome';
import {
  activeJob,
  hasReachedOutcome,
  respond,
  type Script,
  scriptFromOutcome,
  type SimulatedOutcome,
} from './simulated-outcome';
import { type NamedRequest, planFromRequest } from './start';

/** The maximum number of steps of a simulation. Every possible outcome needs fewer steps. */
const MAX_STEPS = 1_000;

/** Simulates one run of a follow-up: simulated events drive the engine, which is the code that decides in the workflow. */
export class InMemoryFollowUp {
  readonly runId = crypto.randomUUID();
  readonly startedAt = Date.now();
  /** Resolves when the run ends. */
  readonly endPromise: Promise<void>;
  /** Null while the run is running. */
  end: RunOutcome | null = null;
  /**
   * True after the simulation of this run has started: after the start delay when workers run, or when the test sets
   * an outcome earlier.
   */
  hasStarted = false;
  private readonly start: RunStart;
  private state: FollowUpState;
  private step: Step;
  private script: Script;
  /** The simulated time in milliseconds since the epoch. A wait advances this time at once. */
  private now: number;
  private resolveEnded: () => void = () => undefined;

  /** @param delayMs the start delay in milliseconds */
  constructor(
    readonly workflowId: string,
    readonly taskQueue: string,
    readonly request: NamedRequest,
    private readonly delayMs: number,
  ) {
    this.now = this.startedAt + delayMs;
    this.start = { startedAt: this.now, firstRunId: this.runId, isReset: false };
    this.state = initialState(planFromRequest(request), this.start);
    this.step = this.decide();
    this.script = scriptFromOutcome({ phase: 'starting' }, request.jobId);
    this.endPromise = new Promise((resolve) => (this.resolveEnded = resolve));
  }

  /** When the start delay ends. Null without a delay, and after the follow-up has started to run or has ended. */
  get startsAt(): string | null {
    const isDelayed = this.delayMs > 0 && !this.hasStarted && this.end === null;
    return isDelayed ? new Date(this.startedAt + this.delayMs).toISOString() : null;
  }

  get sendCount(): number {
    return reportedDelivery(this.state).sends;
  }

  get promptDigest(): string {
    return this.state.promptDigest;
  }

  get receipt(): Receipt {
    return toReceipt(this.state, this.end?.at ?? null);
  }

  get progress(): FollowUpProgress {
    return toFollowUpProgress(this.state, this.step, false);
  }

  /** Runs the engine until the follow-up has this outcome. @throws Error if the follow-up has ended or can't get this outcome */
  simulate(outcome: SimulatedOutcome): void {
    if (this.end !== null) throw new Error(`The follow-up ${this.workflowId} has ended.`);
    const snapshot = { state: this.state, step: this.step, now: this.now };
    this.hasStarted = true;
    this.script = scriptFromOutcome(outcome, this.request.jobId);
    this.state = { ...this.state, plan: { ...this.state.plan, ...this.script.plan } };
    this.step = this.decide();
    const { end = 'completed', phase } = outcome;
    if (phase === undefined && end === 'InvalidRequest') {
      this.endAsInvalid(outcome);
      return;
    }
    for (let steps = 0; steps < MAX_STEPS && !hasReachedOutcome(outcome, this.step); steps += 1)
      this.perform();
    if (phase === undefined && end === 'cancelled') this.apply({ kind: 'cancelled' });
    const { verdict } = reportedDelivery(this.state);
    const hasRequestedOutcome =
      (outcome.verdict ?? verdict) === verdict && (phase ?? end) === this.outcomeOrPhase(outcome);
    if (!hasRequestedOutcome) {
      const actual = `${this.outcomeOrPhase(outcome)} with the verdict ${verdict}`;
      Object.assign(this, snapshot);
      throw new Error(
        `The follow-up can't get the outcome ${JSON.stringify(outcome)}. The simulation ends with ${actual}.`,
      );
    }
    this.finish(outcome);
  }

  cancel(): void {
    this.apply({ kind: 'cancelled' });
    this.finish({});
  }

  pollNow(): void {
    this.apply({ kind: 'read requested', at: this.now });
    const { job, failures } = this.state;
    const isRead = this.step.do === 'read' || this.step.do === 'poll';
    if (isRead && job !== null && failures.lastFailure === null)
      this.apply(this.readEnded(this.now, { kind: 'job', job }));
    else this.perform();
    this.finish({});
  }

  extendDeadline(ms: number): void {
    this.apply({ kind: 'deadline extended', deadlineAt: Math.max(this.now, Date.now()) + ms });
  }

  /**
   * Applies an operator's decision. With `delivered`, the agent then works on the message of the first POST. With `not-delivered`, a
   * second POST is made, and the agent works on its message.
   */
  resolveDelivery(decision: DeliveryDecision): void {
    this.script = scriptFromOutcome({ phase: 'watching' }, this.request.jobId);
    this.apply({ kind: 'delivery decided', decision, runId: this.runId });
    if (decision === 'not-delivered') this.perform();
    this.apply(this.readEnded(this.now, { kind: 'job', job: activeJob(this.request.jobId) }));
    this.finish({});
  }

  describe(): FollowUpDescription {
    const { state, step, end, workflowId, runId, taskQueue, request } = this;
    const isCancelled = end?.state === 'cancelled';
    return {
      workflowId,
      runId,
      state: end?.state ?? 'running',
      startedAt: new Date(this.startedAt).toISOString(),
      startsAt: this.startsAt,
      endedAt: end && new Date(end.at).toISOString(),
      taskQueue,
      phase: step.phase,
      outcome: end?.outcome ?? null,
      verdict: end?.outcome ? reportedDelivery(state).verdict : null,
      evidence: end?.outcome ? this.receipt.evidence : null,
      jobStatus: state.job?.status ?? null,
      projectId: request.projectId,
      jobId: request.jobId,
      workflowTaskFailure: null,
      receipt: isCancelled ? this.receipt : null,
    };
  }

  private decide(): Step {
    return nextStep(this.state, this.now, () => 0.5);
  }

  private apply(event: FollowUpEvent): void {
    this.state = apply(this.state, event);
    this.step = this.decide();
  }

  private readEnded(at: number, response: ReturnType<typeof respond>): FollowUpEvent {
    return { kind: 'read ended', response, requestedAt: at, at: at + 1 };
  }

  /** Advances the time to the next step and performs the step with the response of the simulated agent service. */
  private perform(): void {
    const { script, state, step } = this;
    const isOverdue = state.lastResponseAt > 0 && script.deliveryAtDeadline === state.delivery.kind;
    const at = Math.max(this.now, isOverdue ? state.deadlineAt : 'at' in step ? step.at : 0);
    this.now = at + 1;
    const { jobId } = this.request;
    if (step.do === 'conclude reconciling') this.apply({ kind: 'reconciling ended' });
    else if (step.do === 'send') {
      const end = script.send.kind === 'posted' ? { ...script.send, sentAt: at } : script.send;
      this.apply({
        kind: 'send ended',
        outcome: end,
        lockRunId: null,
        startedAt: at,
        at: at + 1,
        maxPostMs: 0,
      });
    } else this.apply(this.readEnded(at, respond(script, state, jobId)));
  }

  /** Returns the follow-up's outcome or, if the follow-up has none, its phase. */
  private outcomeOrPhase({ end, phase }: SimulatedOutcome): string {
    const { step } = this;
    if (step.do === 'end') return toOutcomeName(step.outcome);
    return phase === undefined && (end === 'terminated' || end === 'timed-out') ? end : step.phase;
  }

  /** Ends the run if its next step is the end, or if the outcome is an end that a client or a timeout causes. */
  private finish(outcome: SimulatedOutcome): void {
    const { state, step, now } = this;
    const end = outcome.phase === undefined ? forcedRunOutcome(outcome, now) : null;
    if (end !== null) this.endRun(end);
    else if (step.do === 'end') this.endRun(outcomeFromEngine(state, step.outcome, now, outcome.message));
  }

  private endAsInvalid({ message = 'was rejected by the worker' }: SimulatedOutcome): void {
    const problems = [{ field: 'request', text: message }];
    const parts = createInvalidRequestParts(problems, this.workflowId, this.start, this.now);
    this.step = endWithFailure(parts.type, message);
    this.endRun(failedRunOutcome(parts, this.now));
  }

  private endRun(end: RunOutcome): void {
    this.end = end;
    this.resolveEnded();
  }
}
