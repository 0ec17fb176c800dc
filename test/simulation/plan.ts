import type { Operation, MachineOperation } from './operations';
import type { FollowUpRequest } from '../../src/contract/request';
import type { TurnPlan } from '../../sandbox/job-life';
import type { TerminalStatus } from '../../src/contract/job';

/**
 * Everything that happens in one simulated world, as data. Other random values, such as the duration of a call or the worker that
 * gets a task, are drawn from the seed with a name for each. If an operation is removed from a plan, they stay the same.
 */
export interface WorldPlan<Act> {
  readonly seed: number;
  /** The fields that all follow-ups of the world share. */
  readonly request: Partial<FollowUpRequest>;
  readonly jobs: readonly PlannedJob[];
  readonly workers: number;
  /** The Temporal server suggests continue-as-new when a history has at least this number of events. */
  readonly suggestFrom: number;
  readonly operations: readonly PlannedOperation<Act | MachineOperation>[];
}

/** The plan of one follow-up. */
export interface Plan extends WorldPlan<Operation> {
  readonly request: FollowUpRequest & { readonly requestId: string };
  readonly jobs: readonly [PlannedJob];
  /** The start delay of the follow-up, which the client also writes into the memo. */
  readonly startDelayMs: number;
  /** The job lock that another follow-up or client holds from the beginning; null if the lock is free. */
  readonly lock: PlannedLock | null;
}

export interface PlannedLock {
  readonly heldMs: number;
  /**
   * How the lock becomes free. `released`: the holder releases the lock and ends. `left`: the holder ends without releasing the lock.
   * `foreign`: another client's workflow, which has the ID of the lock, ends. `never`: the lock is held until the end of the world.
   */
  readonly end: 'released' | 'left' | 'foreign' | 'never';
}

export interface PlannedJob {
  readonly projectId: string;
  readonly jobId: string;
  readonly status: 'active' | TerminalStatus;
  readonly hasLink: boolean;
  /** If the job is active at the start, the length of that turn in milliseconds; null for a turn that never ends. */
  readonly activeMs: number | null;
  /** The turns of the messages that the follow-ups send, in order; the last one repeats. */
  readonly turns: readonly TurnPlan[];
  /** A read may show the job as it was up to this number of milliseconds ago. Together with `takeUpMs`, at most `maxStaleness`. */
  readonly lagMs: number;
  /** The delay between the end of a turn and the time when reads show the link. */
  readonly linkLateMs: number;
  readonly whileActive: 'interrupt' | 'queue';
  readonly faults: readonly Fault[];
}

/** Consecutive requests with one method that do not receive the job. */
export interface Fault {
  readonly method: 'get' | 'post';
  /** The number of earlier requests with this method, which are not affected. */
  readonly after: number;
  readonly count: number;
  /** Whether the fault affects only every second request. */
  readonly isIntermittent: boolean;
  readonly effect: FaultEffect;
}

/** The result of a request to which a fault applies. */
export interface FaultEffect {
  /** Whether the agent service processes the message of a POST despite the fault. */
  readonly processed: boolean;
  readonly kind:
    /** The connection fails, so nothing was sent. */
    | 'no connection'
    | 'misconfigured'
    /** The request is sent and receives no response. */
    | 'reset'
    | 'timeout'
    /** The response has the status 200, but not the requested job. */
    | 'page'
    | 'no job'
    | 'another job'
    /** The response has the job with a status that the contract does not have. */
    | 'unknown status'
    | 'status';
  readonly status?: number;
  readonly retryAfter?: string | undefined;
  /** Whether a gateway sends the status with a page, instead of the agent service with JSON. */
  readonly page?: boolean;
}

/**
 * An operation, `afterMs` after the world reached the point `at` for the `nth` time. Points are, for example, `post started`, `task done`
 * or `phase watching`.
 */
export interface PlannedOperation<Of = Operation> {
  readonly at: string;
  readonly nth: number;
  readonly afterMs: number;
  readonly operation: Of;
}
