import {
  decodeWorkflowIdConflictPolicy,
  decodeWorkflowIdReusePolicy,
  defaultPayloadConverter,
  encodeWorkflowIdReusePolicy,
  mapToPayloads,
} from '@temporalio/common';
import { encodeUnifiedSearchAttributes } from '@temporalio/common/lib/converter/payload-search-attributes';
import type { temporal } from '@temporalio/proto';
import type { Timers, VirtualClock } from '../clock';
import type { RandomSource } from '../random-source';
import type { SimulatedWorker } from '../worker/worker';
import { type Closing, toMs, type Payloads, type RunStart, toPayload } from './history';
import type { PendingActivity } from './pending-activity';
import { Run } from './run';
import { Visibility } from './visibility';

type StartRequest = temporal.api.workflowservice.v1.IStartWorkflowExecutionRequest;

export interface ServerOptions {
  /** The server suggests continue-as-new when a history has this number of events. @default 4096, as on a real Temporal server */
  readonly suggestFrom?: number;
  /** The time for which a closed run is kept. @default no limit */
  readonly retentionMs?: number | null;
  /** The maximum lag of the visibility list. @default 0 */
  readonly listLagMs?: number;
}

/** The statuses after which `ALLOW_DUPLICATE_FAILED_ONLY` allows another run with the same workflow ID. */
const FAILURE = /^WorkflowExecution(Failed|Canceled|Terminated)$/;

/** The wait of a task in its task queue: mostly some milliseconds, sometimes seconds. */
const QUEUE_MS = { least: 1, usual: 30, slow: 8_000, slowShare: 0.08 };

/** A start delay of this length lasts beyond the end of every world, so it has no timer. */
const LONG_DELAY_MS = 30 * 86_400_000;

/** Makes a request to start a workflow with a new workflow ID. */
export function startRequest(
  workflowId: string,
  workflowType: string,
  taskQueue: string,
  input: unknown,
  memo: Readonly<Record<string, unknown>>,
  attributes: Parameters<typeof encodeUnifiedSearchAttributes>[1],
): StartRequest {
  return {
    workflowId,
    workflowType: { name: workflowType },
    taskQueue: { name: taskQueue },
    input: { payloads: [toPayload(input)] },
    memo: { fields: mapToPayloads(defaultPayloadConverter, memo) },
    searchAttributes: { indexedFields: encodeUnifiedSearchAttributes(undefined, attributes) },
    workflowIdReusePolicy: encodeWorkflowIdReusePolicy('REJECT_DUPLICATE') ?? null,
  };
}

let servers = 0;

/** A simulated Temporal server with one namespace: its runs, task queues and visibility list. */
export class TemporalServer {
  readonly runs: Run[] = [];
  /** The namespace, which differs for each simulated server. */
  readonly namespace = `simulation ${(servers += 1)}`;
  readonly visibility: Visibility;
  readonly suggestFrom: number;
  readonly retentionMs: number;
  /** The server's clock. While the server is unavailable, its timers do not run. */
  readonly clock: Timers;
  private readonly workers = new Set<SimulatedWorker>();
  private readonly deleted = new Set<Run>();
  private readonly waiting: (Run | PendingActivity)[] = [];
  private readonly heldQueues = new Map<string, number>();
  private unavailableUntil = 0;

  /** @param onEvent receives events of a run for the event log */
  constructor(
    private readonly virtualClock: VirtualClock,
    private readonly random: RandomSource,
    { suggestFrom = 4_096, retentionMs, listLagMs = 0 }: ServerOptions,
    readonly onEvent: (run: Run, words: string) => void,
  ) {
    this.suggestFrom = suggestFrom;
    this.retentionMs = retentionMs ?? Infinity;
    this.clock = {
      get now() {
        return virtualClock.now;
      },
      after: (ms, work) => virtualClock.after(ms, () => this.whenAvailable(work)),
    };
    this.visibility = new Visibility(virtualClock, random, listLagMs);
  }

  /** Calls `work` now or, if the server is unavailable, when it is available again. */
  whenAvailable(work: () => void): void {
    const leftMs = this.unavailableUntil - this.virtualClock.now;
    if (leftMs > 0) this.clock.after(leftMs, work);
    else work();
  }

  becomeUnavailable(ms: number): void {
    this.unavailableUntil = Math.max(this.unavailableUntil, this.virtualClock.now + ms);
  }

  join(worker: SimulatedWorker): void {
    this.workers.add(worker);
    this.dispatchTasks();
  }

  /** Holds the tasks of a task queue for `ms` milliseconds, like a rate limit. */
  hold(taskQueue: string, ms: number): void {
    this.heldQueues.set(taskQueue, this.virtualClock.now + ms);
    this.clock.after(ms, () => this.dispatchTasks());
  }

  get polling(): SimulatedWorker[] {
    return [...this.workers].filter(({ state }) => state === 'alive');
  }

  /**
   * Starts a workflow.
   *
   * @param by the run or the client that requests the start
   * @returns the started run, or the existing run to which the request attaches; null if an existing run prevents the start
   */
  start(request: StartRequest, by?: string): Run | null {
    const { workflowId, requestId, workflowIdConflictPolicy } = request;
    const reuse = decodeWorkflowIdReusePolicy(request.workflowIdReusePolicy);
    const before = this.find(workflowId ?? '');
    if (requestId && before?.start.requester?.requestId === requestId) return before;
    if (before?.isOpen)
      return decodeWorkflowIdConflictPolicy(workflowIdConflictPolicy) === 'USE_EXISTING' ? before : null;
    const isRejected =
      reuse === 'REJECT_DUPLICATE' ||
      (reuse === 'ALLOW_DUPLICATE_FAILED_ONLY' && !FAILURE.test(before?.status ?? ''));
    if (before !== undefined && isRejected) return null;
    const runId = this.newRunId();
    const start = {
      workflowId: workflowId ?? '',
      workflowType: request.workflowType?.name ?? '',
      taskQueue: request.taskQueue?.name ?? '',
      input: request.input?.payloads ?? [],
      memo: request.memo?.fields ?? {},
      searchAttributes: request.searchAttributes?.indexedFields ?? {},
      runId,
      firstRunId: runId,
      originalRunId: runId,
      ...(by !== undefined && { requester: { by, requestId: requestId ?? '' } }),
    };
    const run = this.addRun(start, Boolean(request.workflowStartDelay));
    run.begin();
    const delayMs = toMs(request.workflowStartDelay);
    if (delayMs > 0 && delayMs < LONG_DELAY_MS) this.clock.after(delayMs, () => run.endDelay());
    return run;
  }

  /** @param runId @default the latest run of the workflow ID @returns undefined if the run does not exist or is no longer kept */
  find(workflowId: string, runId?: string | null): Run | undefined {
    const run = this.runs.findLast(
      (each) => each.workflowId === workflowId && (!runId || each.runId === runId),
    );
    return run && this.isRetained(run) ? run : undefined;
  }

  /** Deletes a closed run, as an operator can. */
  delete(run: Run): void {
    this.deleted.add(run);
  }

  /** Whether the run still exists: it was not deleted, and the retention has not passed since its end. */
  isRetained(run: Run): boolean {
    return !this.deleted.has(run) && run.closedAt + this.retentionMs > this.virtualClock.now;
  }

  /** Resets a run to one of its workflow tasks. @returns the new run; null if the run is not the latest one of its workflow */
  reset(run: Run, startedAt: number): Run | null {
    if (this.find(run.workflowId) !== run) return null;
    run.terminate();
    const next = this.addRun({ ...run.start, runId: this.newRunId() });
    next.copyHistoryFrom(run, startedAt);
    return next;
  }

  /** Finds a pending activity with the token of an attempt. */
  findActivity(token: string): PendingActivity | undefined {
    const [runId, seq] = token.split('/');
    return this.runs.find((run) => run.runId === runId)?.activities.get(Number(seq));
  }

  /** @param name the name of the task's random delays */
  enqueue(task: Run | PendingActivity, name: string): void {
    this.clock.after(this.random.delayMs(name, 'queue', QUEUE_MS), () => {
      this.waiting.push(task);
      this.dispatchTasks();
    });
  }

  continueAsNew(run: Run, { input, memo }: Extract<Closing, { readonly input: Payloads }>): void {
    const { start, searchAttributes, runId: continuedFromRunId } = run;
    const runId = this.newRunId();
    const next = { ...start, runId, originalRunId: runId, continuedFromRunId, input, searchAttributes };
    // Without a given memo, the next run has the memo of the start, which the SDK's core fills in. It has the latest search attributes.
    this.addRun({ ...next, memo: Object.keys(memo).length > 0 ? memo : start.memo }).begin();
  }

  private addRun(start: RunStart, isDelayed = false): Run {
    const run = new Run(this, start, isDelayed);
    this.runs.push(run);
    return run;
  }

  private newRunId(): string {
    return `run-${this.runs.length + 1}`;
  }

  /** Gives the waiting tasks to workers that poll, except tasks of held task queues. */
  private dispatchTasks(): void {
    const { polling } = this;
    if (polling.length === 0) return;
    for (const task of this.waiting.splice(0)) {
      const { taskQueue } = task instanceof Run ? task.start : task.options;
      if ((this.heldQueues.get(taskQueue ?? '') ?? 0) > this.virtualClock.now) {
        this.waiting.push(task);
        continue;
      }
      const worker = this.random.pick('worker', polling);
      if (task instanceof Run)
        (polling.find((each) => each.cache.has(task.runId)) ?? worker).runWorkflowTask(task);
      else worker.startActivity(task);
    }
  }
}
