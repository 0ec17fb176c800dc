import { sha256Hex, followUpWorkflowId } from '../contract/ids';
import { describeConflict } from '../contract/outcome';
import { TemporalUnreachableError } from '../temporal/server-error';
import { ConflictError, interruptedCallError, notFoundError, type CallState } from './errors';
import { InMemoryFollowUp } from './in-memory-follow-up';
import type { SimulatedOutcome } from './simulated-outcome';
import type { NamedRequest, FollowUpStartResult } from './start';

export const IN_MEMORY_NAMESPACE = 'in-memory';

/**
 * `no-workers`: a follow-up that is started stays in the phase `starting`, and no worker responds. `unreachable`: the Temporal
 * server responds to no call.
 */
export type Availability = 'all' | 'no-workers' | 'unreachable';

/** The longest timer of Node, about 24 days. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The follow-ups of a client for tests, as the Temporal server and its workers would keep them. */
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

  /** @throws FollowUpError `UNREACHABLE`, or `START_UNCONFIRMED` if the call may have started a follow-up */
  checkReachable(reached: CallState): void {
    if (this.availability !== 'unreachable') return;
    const message = 'The Temporal server does not respond; the same call may be repeated.';
    if (reached.unconfirmed !== undefined) throw interruptedCallError('UNREACHABLE', message, reached);
    throw new TemporalUnreachableError(message);
  }

  whenReachable(): Promise<void> {
    if (this.availability !== 'unreachable') return Promise.resolve();
    return new Promise((resolve) => this.waitingCalls.push(resolve));
  }

  /** Performs an action that needs a worker, at once or when workers run again. */
  whenWorkersRun(action: () => void): void {
    if (this.hasWorkers) action();
    else this.waitingActions.push(action);
  }

  /** Returns the latest run. @throws NotFoundError */
  find(workflowId: string): InMemoryFollowUp {
    const found = this.followUps.findLast((followUp) => followUp.workflowId === workflowId);
    if (found === undefined) throw notFoundError('follow-up', workflowId, IN_MEMORY_NAMESPACE);
    return found;
  }

  /** @throws ConflictError if the follow-up exists with another prompt */
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

  /** Starts a run. @throws the error of the test's own function, which starts nothing */
  start(request: NamedRequest, delayMs = 0): InMemoryFollowUp {
    const { projectId, jobId, requestId } = request;
    const workflowId = followUpWorkflowId(projectId, jobId, requestId);
    const followUp = new InMemoryFollowUp(workflowId, this.taskQueue, request, delayMs);
    const startRun = () => {
      this.whenWorkersRun(() => {
        // A test may have given the follow-up an outcome, or cancelled it, in the meantime.
        if (!followUp.hasStarted && followUp.end === null) followUp.simulate(this.outcomeOf(request));
      });
    };
    if (delayMs === 0) startRun();
    else setTimeout(startRun, Math.min(delayMs, MAX_TIMER_MS)).unref();
    this.followUps.push(followUp);
    return followUp;
  }
}
