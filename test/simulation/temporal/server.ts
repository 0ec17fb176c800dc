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
  /** From so many events on a run is told to continue as new. @default 4096, the server's own */
  readonly suggestFrom?: number;
  /** For how long a run is kept that has ended. @default for ever */
  readonly retentionMs?: number | null;
  /** How late a list knows of what has happened, at most. @default 0 */
  readonly listLagMs?: number;
}

/** After these ends an id may be used again with `ALLOW_DUPLICATE_FAILED_ONLY`. */
const FAILURE = /^WorkflowExecution(Failed|Canceled|Terminated)$/;

/** How long a task waits in its queue: mostly some milliseconds, now and then seconds. */
const QUEUE_MS = { least: 1, usual: 30, slow: 8_000, slowShare: 0.08 };

/** A longer start delay lasts beyond the end of every world. */
const LONG_DELAY_MS = 30 * 86_400_000;

/** A start by nobody in particular, of an id that was never used. */
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

/** A Temporal server of one namespace: runs, task queues, and what a client may ask. */
export class TemporalServer {
  readonly runs: Run[] = [];
  /** No other server has it. */
  readonly namespace = `simulation ${(servers += 1)}`;
  readonly visibility: Visibility;
  readonly suggestFrom: number;
  readonly retentionMs: number;
  /** Its own clock: nothing is due while it is away. */
  readonly clock: Timers;
  private readonly workers = new Set<SimulatedWorker>();
  private readonly deleted = new Set<Run>();
  private readonly waiting: (Run | PendingActivity)[] = [];
  private readonly heldQueues = new Map<string, number>();
  private unavailableUntil = 0;

  /** @param onEvent of a run, for a story */
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

  /** Calls `work` now, or when the server is back. */
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

  /** A limit keeps the tasks of a queue for so long. */
  hold(taskQueue: string, ms: number): void {
    this.heldQueues.set(taskQueue, this.virtualClock.now + ms);
    this.clock.after(ms, () => this.dispatchTasks());
  }

  get polling(): SimulatedWorker[] {
    return [...this.workers].filter(({ state }) => state === 'alive');
  }

  /**
   * @param by who has asked for it
   * @returns the run that was started, or the one that is the answer to it; null if one of this id is in the way
   */
  start(request: StartRequest, by?: string): Run | null {
    const { workflowId, requestId, workflowIdConflictPolicy } = request;
    const reuse = decodeWorkflowIdReusePolicy(request.workflowIdReusePolicy);
    const before = this.find(workflowId ?? '');
    if (requestId && before?.start.requester?.requestId === requestId) return before;
    if (before?.isOpen)
      return decodeWorkflowIdConflictPolicy(workflowIdConflictPolicy) === 'USE_EXISTING' ? before : null;
    const isRefused =
      reuse === 'REJECT_DUPLICATE' ||
      (reuse === 'ALLOW_DUPLICATE_FAILED_ONLY' && !FAILURE.test(before?.status ?? ''));
    if (before !== undefined && isRefused) return null;
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

  /** @param runId the latest run of the id if there is none. @returns undefined if the server does not know it any more */
  find(workflowId: string, runId?: string | null): Run | undefined {
    const run = this.runs.findLast(
      (each) => each.workflowId === workflowId && (!runId || each.runId === runId),
    );
    return run && this.isRetained(run) ? run : undefined;
  }

  /** Somebody deletes a run that has ended. */
  delete(run: Run): void {
    this.deleted.add(run);
  }

  /** Whether it was not deleted, and is younger than the retention. */
  isRetained(run: Run): boolean {
    return !this.deleted.has(run) && run.closedAt + this.retentionMs > this.virtualClock.now;
  }

  /** Resets a run to one of its tasks. @returns the new run; null if the run is not one that can be */
  reset(run: Run, startedAt: number): Run | null {
    if (this.find(run.workflowId) !== run) return null;
    run.terminate();
    const next = this.addRun({ ...run.start, runId: this.newRunId() });
    next.copyHistoryFrom(run, startedAt);
    return next;
  }

  /** A pending activity by the token of its attempt. */
  findActivity(token: string): PendingActivity | undefined {
    const [runId, seq] = token.split('/');
    return this.runs.find((run) => run.runId === runId)?.activities.get(Number(seq));
  }

  /** @param name of its delays */
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
    // Where none is given, it is the one it was started with (the core fills it in); the search attributes are the latest.
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

  /** Hands out what waits, as far as there is a worker that polls. */
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
