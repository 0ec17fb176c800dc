import { temporal } from '@temporalio/proto';
import type { Timers, VirtualClock } from '../clock';
import type { Luck } from '../luck';
import { type ChildOptions, type Fields, fromPayload, type Payloads } from './history';
import type { PendingActivity } from './pending-activity';
import { Run, type RunOwner, type RunStart } from './run';

const { RetryState } = temporal.api.enums.v1;

/** A worker as the server sees it: it polls, or it does not. */
export interface Poller {
  readonly polls: boolean;
  hasCached(run: Run): boolean;
  takeTask(run: Run): void;
  takeActivity(activity: PendingActivity): void;
}

export interface ServerOptions {
  /** From so many events on a run is told to continue as new. @default 4096, the server's own */
  readonly suggestFrom?: number;
  /** For how long a run is kept that has ended. @default for ever */
  readonly retentionMs?: number;
  /** How late a list knows of what has happened, at most. @default 0 */
  readonly listLagMs?: number;
}

interface StartOptions {
  readonly workflowType: string;
  readonly workflowId: string;
  readonly taskQueue: string;
  readonly input: Payloads;
  readonly memo?: Fields;
  readonly searchAttributes?: Fields;
}

/** One row of a list: a run as it was a while ago. */
export interface Listed {
  readonly workflowId: string;
  readonly runId: string;
  readonly status: Run['status'];
  readonly memo: Readonly<Record<string, unknown>>;
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** How long a task lies in its queue: mostly some milliseconds, now and then seconds. */
const QUEUE_MS = { usual: 30, slow: 8_000, slowShare: 0.08 };

/** A Temporal server of one namespace: runs, task queues, and what a client may ask. */
export class TemporalServer implements RunOwner {
  readonly runs: Run[] = [];
  readonly suggestFrom: number;
  /** Its own clock: nothing is due while it is away. */
  readonly clock: Timers;
  private readonly workers = new Set<Poller>();
  private readonly waiting: (Run | PendingActivity)[] = [];
  private readonly heldQueues = new Map<string, number>();
  private awayUntil = 0;
  private started = 0;

  constructor(
    time: VirtualClock,
    private readonly luck: Luck,
    private readonly options: ServerOptions,
    private readonly told: (run: Run, words: string) => void,
  ) {
    this.suggestFrom = options.suggestFrom ?? 4_096;
    const after = (ms: number, work: () => void) =>
      time.after(ms, () => {
        this.whenThere(work);
      });
    this.clock = {
      get now() {
        return time.now;
      },
      after,
    };
    this.sleep = (ms, work) => {
      time.after(ms, work);
    };
  }

  private readonly sleep: (ms: number, work: () => void) => void;

  /** Calls `work` now, or when the server is back. */
  whenThere(work: () => void): void {
    const leftMs = this.awayUntil - this.clock.now;
    if (leftMs > 0)
      this.sleep(leftMs, () => {
        this.whenThere(work);
      });
    else work();
  }

  goAway(ms: number): void {
    this.awayUntil = Math.max(this.awayUntil, this.clock.now + ms);
  }

  join(worker: Poller): void {
    this.workers.add(worker);
    this.deliver();
  }

  leave(worker: Poller): void {
    this.workers.delete(worker);
  }

  /** A limit keeps the tasks of a queue for so long. */
  hold(taskQueue: string, ms: number): void {
    this.heldQueues.set(taskQueue, this.clock.now + ms);
    this.clock.after(ms, () => {
      this.deliver();
    });
  }

  // What a client may ask for.

  /**
   * @param follows whether one that has ended may have had this id
   * @returns the run that was started; null if one of this id exists already
   */
  startWorkflow(options: StartOptions, parent?: RunStart['parent'], follows = false): Run | null {
    const before = this.latest(options.workflowId);
    if (before !== undefined && (before.isOpen || !follows)) return null;
    const runId = this.newRunId();
    const { memo = {}, searchAttributes = {} } = options;
    return this.begin({
      ...options,
      memo,
      searchAttributes,
      runId,
      firstRunId: runId,
      originalRunId: runId,
      ...(parent && { parent }),
    });
  }

  /** The latest run of an id; undefined if the server knows none any more. */
  latest(workflowId: string): Run | undefined {
    const { retentionMs = Infinity } = this.options;
    return this.runs.findLast(
      (run) => run.workflowId === workflowId && run.closedAt + retentionMs > this.clock.now,
    );
  }

  /** Resets a run to one of its tasks. @returns the new run; null if the run is not one that can be */
  reset(run: Run, task: { readonly startedAt: number }): Run | null {
    if (this.latest(run.workflowId) !== run) return null;
    run.terminate();
    const runId = this.newRunId();
    const next = new Run(this, { ...run.start, runId });
    this.runs.push(next);
    next.takeOver(run, task, runId);
    return next;
  }

  /** Every run that the server knows of, as a list shows it. */
  list(): Listed[] {
    const { retentionMs = Infinity } = this.options;
    return this.runs
      .filter((run) => run.closedAt + retentionMs > this.clock.now)
      .map((run) => ({
        workflowId: run.workflowId,
        runId: run.runId,
        status:
          run.closedAt + this.luck.between('list', 0, this.options.listLagMs ?? 0) > this.clock.now
            ? 'running'
            : run.status,
        memo: decoded(run.memo),
        attributes: decoded(run.searchAttributes),
      }));
  }

  /** A pending activity by the token of its attempt. */
  activityOf(token: string): PendingActivity | undefined {
    const [runId, seq] = token.split('/');
    return this.runs.find((run) => run.runId === runId)?.activities.get(Number(seq));
  }

  // What runs ask for.

  offerTask(run: Run): void {
    this.offer(run, run.workflowId);
  }

  enqueue(activity: PendingActivity): void {
    this.offer(activity, `${activity.workflow.workflowId} ${activity.name}`);
  }

  startChild(parent: Run, seq: number, child: ChildOptions): void {
    const { isAbandoned, follows } = child;
    const run = this.startWorkflow(child, { run: parent, seq, isAbandoned }, follows);
    parent.happen(
      run === null
        ? { type: 'StartChildWorkflowExecutionFailed', seq, child }
        : { type: 'ChildWorkflowExecutionStarted', seq, runId: run.runId },
    );
    if (run !== null) parent.children.set(seq, run);
  }

  continueAsNew(run: Run, input: Payloads): void {
    // The memo is the one it was started with (the core fills it in); the search attributes are the latest.
    const { start, searchAttributes, runId } = run;
    const nextId = this.newRunId();
    const ids = { runId: nextId, originalRunId: nextId, continuedFromRunId: runId };
    const next = { ...start, input, searchAttributes, ...ids };
    this.clock.after(0, () => {
      this.begin(next);
    });
  }

  closed(run: Run): void {
    for (const child of run.children.values())
      if (child.start.parent?.isAbandoned === false) child.terminate();
    const { parent } = run.start;
    if (parent === undefined || run.status === 'WorkflowExecutionContinuedAsNew') return;
    const { seq } = parent;
    const { result, failure } = run.end;
    if (run.status === 'WorkflowExecutionCompleted')
      parent.run.happen({
        type: 'ChildWorkflowExecutionCompleted',
        seq,
        result: { completed: { result: result ?? null } },
      });
    else {
      const isTerminated = run.status === 'WorkflowExecutionTerminated';
      const cause = isTerminated
        ? { message: 'Terminated', terminatedFailureInfo: {} }
        : (failure ?? { message: run.status });
      const childWorkflowExecutionFailureInfo = {
        workflowType: { name: run.start.workflowType },
        workflowExecution: { workflowId: run.workflowId },
        retryState: RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE,
      };
      const failed = {
        failure: { message: 'Child Workflow execution failed', cause, childWorkflowExecutionFailureInfo },
      };
      const type = isTerminated ? 'ChildWorkflowExecutionTerminated' : 'ChildWorkflowExecutionFailed';
      parent.run.happen({ type, seq, result: { failed } });
    }
  }

  said(run: Run, words: string): void {
    this.told(run, words);
  }

  private begin(start: RunStart): Run {
    const run = new Run(this, start);
    this.runs.push(run);
    run.begin();
    return run;
  }

  private newRunId(): string {
    this.started += 1;
    return `run-${this.started}`;
  }

  private offer(task: Run | PendingActivity, name: string): void {
    const isSlow = this.luck.chance(`${name} is slow`, QUEUE_MS.slowShare);
    const ms = this.luck.between(`${name} queue`, 1, isSlow ? QUEUE_MS.slow : QUEUE_MS.usual);
    this.clock.after(ms, () => {
      this.waiting.push(task);
      this.deliver();
    });
  }

  /** Hands out what waits, as far as there is a worker that polls. */
  private deliver(): void {
    const polling = [...this.workers].filter(({ polls }) => polls);
    if (polling.length === 0) return;
    for (const task of this.waiting.splice(0)) {
      const taskQueue = task instanceof Run ? task.start.taskQueue : task.options.taskQueue;
      if ((this.heldQueues.get(taskQueue) ?? 0) > this.clock.now) {
        this.waiting.push(task);
        continue;
      }
      const worker = this.luck.of('worker', polling);
      if (task instanceof Run) (polling.find((each) => each.hasCached(task)) ?? worker).takeTask(task);
      else worker.takeActivity(task);
    }
  }
}

function decoded(fields: Fields): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([name, payload]) => [name, fromPayload(payload)]));
}
