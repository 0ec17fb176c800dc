import type { Operation, MachineOperation } from './operations';
import type { FollowUpRequest } from '../../src/contract/request';
import type { TurnPlan } from '../../sandbox/job-life';
import type { TerminalStatus } from '../../src/contract/job';

/**
 * Everything that happens in one simulated world, as data. What is not in it (how long a call takes, which worker gets a
 * task) is drawn from the seed by name, so that a plan from which something is taken away stays the same otherwise.
 */
export interface WorldPlan<Act> {
  readonly seed: number;
  /** Of each follow-up. */
  readonly request: Partial<FollowUpRequest>;
  readonly jobs: readonly PlannedJob[];
  readonly workers: number;
  /** From so many events on the server suggests to continue as new. */
  readonly suggestFrom: number;
  readonly operations: readonly PlannedOperation<Act | MachineOperation>[];
}

/** The plan of one follow-up. */
export interface Plan extends WorldPlan<Operation> {
  readonly request: FollowUpRequest & { readonly requestId: string };
  readonly jobs: readonly [PlannedJob];
  /** The start delay of the follow-up, which its client writes into the memo. */
  readonly startDelayMs: number;
  /** Another follow-up that holds the job lock from the beginning; null if there is none. */
  readonly lock: PlannedLock | null;
}

export interface PlannedLock {
  readonly heldMs: number;
  /**
   * How the lock becomes free. `released`: its holder releases it. `left`: its holder ends and leaves it. `foreign`: another client's
   * workflow with the ID of the lock ends. `never`: it stays until the end of the world.
   */
  readonly end: 'released' | 'left' | 'foreign' | 'never';
}

export interface PlannedJob {
  readonly projectId: string;
  readonly jobId: string;
  readonly status: 'active' | TerminalStatus;
  readonly hasLink: boolean;
  /** How long the turn of a job lasts that is active before; null for one that never ends. */
  readonly activeMs: number | null;
  /** Of the turns of our messages, in order; the last one repeats. */
  readonly turns: readonly TurnPlan[];
  /** A read may show the job as it was so long ago, in milliseconds. With `takeUpMs` it is not above `maxStaleness`. */
  readonly lagMs: number;
  /** So long after a turn the link is there. */
  readonly linkLateMs: number;
  readonly whileActive: 'interrupt' | 'queue';
  readonly faults: readonly Fault[];
}

/** Consecutive requests with one method that are answered in another way. */
export interface Fault {
  readonly method: 'get' | 'post';
  /** The number of requests with this method that come before. */
  readonly after: number;
  readonly count: number;
  /** Only each second one of them: a service that isIntermittent. */
  readonly isIntermittent: boolean;
  readonly effect: FaultEffect;
}

/** What comes of a request in place of the job. */
export interface FaultEffect {
  /** The message of a POST may be processed all the same. */
  readonly processed: boolean;
  readonly kind:
    /** No connection: nothing can have been sent. */
    | 'refused'
    | 'misconfigured'
    /** The request is on its way, and nothing comes back. */
    | 'reset'
    | 'timeout'
    /** A success that is not the job. */
    | 'page'
    | 'no job'
    | 'another job'
    /** The job, with a status that nobody knows. */
    | 'unknown word'
    | 'status';
  readonly status?: number;
  readonly retryAfter?: string | undefined;
  /** A gateway says so, by a page, and not the service. */
  readonly page?: boolean;
}

/** Something is done when a point is reached for the nth time, and so long after it. */
export interface PlannedOperation<Of = Operation> {
  readonly at: string;
  readonly nth: number;
  readonly afterMs: number;
  readonly operation: Of;
}
