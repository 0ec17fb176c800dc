import { sha256Hex, followUpWorkflowId } from '../contract/ids';
import { describeConflict } from '../contract/outcome';
import { TemporalUnreachableError } from '../temporal/server-error';
import { MAX_TIMEOUT_MS } from './call-runner';
import {
  type CallState,
  ConflictError,
  interruptedCallError,
  notFoundError,
  runNotFoundError,
} from './errors';
import { InMemoryFollowUp } from './in-memory-follow-up';
import type { NamedRun } from './named-run';
import type { SimulatedOutcome } from './simulated-outcome';
import type { NamedRequest, FollowUpStartResult } from './start';

export const IN_MEMORY_NAMESPACE = 'in-memory';

export const AVAILABILITIES = ['all', 'no-workers', 'unreachable'] as const;

/**
 * With `no-workers`, the last poll of a worker was more than 90 s ago: a started follow-up stays in the phase `starting`, and no worker
 * responds. With `unreachable`, the Temporal server does not respond to any call. With `all`, both respond.
 */
export type Availability = (typeof AVAILABILITIES)[number];

/** Simulates a Temporal server and its workers for {@link InMemoryFollowUpClient}, and has its follow-ups. */
export class InMemoryServer {
  readonly followUps: InMemoryFollowUp[] = [];
  private availability: Availability = 'all';
  private waitingCalls: (() => void)[] = [];
  private waitingActions: (() => void)[] = [];

  constructor(
    readonly taskQueue: string,
    private readonly outcomeOf: (request: NamedRequest) => SimulatedOutcome,
  ) {}

  get hasWorkers(): boolean {
    return this.availability === 'all';
  }

  setAvailability(availability: Availability): void {
    this.availability = availability;
    if (availability === 'unreachable') return;
    for (const resume of this.waitingCalls.splice(0)) resume();
    if (this.hasWorkers) for (const action of this.waitingActions.splice(0)) action();
  }

  /** @throws FollowUpError `UNREACHABLE`; for a call that starts a follow-up, `START_UNCONFIRMED` */
  checkReachable(callState: CallState): void {
    if (this.availability !== 'unreachable') return;
    const message = 'The Temporal server did not respond in time; repeat the call.';
    if (callState.unconfirmedStart !== undefined)
      throw interruptedCallError('UNREACHABLE', message, callState);
    throw new TemporalUnreachableError(message);
  }

  /** Resolves as soon as the Temporal server is reachable. */
  whenReachable(): Promise<void> {
    if (this.availability !== 'unreachable') return Promise.resolve();
    return new Promise((resolve) => this.waitingCalls.push(resolve));
  }

  /** Performs an action that needs a worker. If no worker runs, the action waits until workers run again. */
  whenWorkersRun(action: () => void): void {
    if (this.hasWorkers) action();
    else this.waitingActions.push(action);
  }

  /** Returns a run of a follow-up. @throws NotFoundError */
  find({ workflowId, runId }: NamedRun): InMemoryFollowUp {
    const runs = this.followUps.filter((followUp) => followUp.workflowId === workflowId);
    const found = runId === undefined ? runs.at(-1) : runs.find((run) => run.runId === runId);
    if (found !== undefined) return found;
    if (runId !== undefined && runs.length > 0) throw runNotFoundError('follow-up', workflowId, runId);
    throw notFoundError('follow-up', workflowId, IN_MEMORY_NAMESPACE);
  }

  /** Returns the existing follow-up, or undefined if none exists. @throws ConflictError if its prompt differs */
  attach(workflowId: string, { prompt, requestId }: NamedRequest): FollowUpStartResult | undefined {
    const found = this.followUps.findLast((followUp) => followUp.workflowId === workflowId);
    if (found === undefined) return undefined;
    const { promptDigest, runId, end } = found;
    if (promptDigest !== sha256Hex(prompt))
      throw new ConflictError('CONFLICT', describeConflict(workflowId), { workflowId });
    return {
      workflowId,
      requestId,
      runId,
      attached: end === null ? 'running' : 'ended',
      promptCompared: true,
    };
  }

  /** Starts a run. @throws the error of the test's `outcomeOf` function; nothing is started in this case */
  start(request: NamedRequest, delayMs = 0): InMemoryFollowUp {
    const { projectId, jobId, requestId } = request;
    const workflowId = followUpWorkflowId(projectId, jobId, requestId);
    const outcome = this.outcomeOf(request);
    const followUp = new InMemoryFollowUp(workflowId, this.taskQueue, request, delayMs);
    const startRun = () => {
      this.whenWorkersRun(() => {
        // During the wait, the test may have set the follow-up's outcome or cancelled the follow-up.
        if (!followUp.hasStarted && followUp.end === null) followUp.simulate(outcome);
      });
    };
    if (delayMs === 0) startRun();
    else setTimeout(startRun, Math.min(delayMs, MAX_TIMEOUT_MS)).unref();
    this.followUps.push(followUp);
    return followUp;
  }
}
