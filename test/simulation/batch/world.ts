import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { BatchHandle } from '../../../src/client/batch/batch-client';
import { checkBatch, type CheckedBatch, type RunOptions } from '../../../src/client/batch/check';
import { type BatchDescription, findBatch } from '../../../src/client/batch/describe';
import { startBatch } from '../../../src/client/batch/start';
import { CallRunner } from '../../../src/client/call-runner';
import { retryFollowUp, startFollowUp } from '../../../src/client/start';
import { toItemRequestId } from '../../../src/batch/items';
import type { BatchItemResult } from '../../../src/batch/progress';
import type { BatchBoard } from '../../../src/batch/board';
import { type BatchMemo, MEMO_BATCH } from '../../../src/batch/memo';
import { batchWorkflowId, followUpWorkflowId } from '../../../src/contract/ids';
import type { MachineOperation } from '../operations';
import type { Request } from '../agent-service';
import { fromPayload } from '../temporal/history';
import type { Run } from '../temporal/run';
import { createClient } from '../temporal/simulated-client';
import { isClientError, MAX_FAILURES, WORKFLOWS_WITHOUT_WORKER, TASK_QUEUES, World } from '../world';
import type { BatchOperation, BatchPlan } from './plan';

const BATCH_ID = 'batch';
export const BATCH_WORKFLOW_ID = batchWorkflowId(BATCH_ID);

/** The result of an operation on an item that does not exist or has the wrong state. */
export const NO_SUCH_ITEM = 'nothing to do';

const LONGEST_PAUSE_S = 120;

/** Longer than the lag of the visibility list, and than the period that a live reader reads again. */
const UNTIL_LISTED_MS = 90_000;

/** Points that the event log shows. */
const LOGGED_POINTS =
  /^(runItems (started|reported)|board recorded|post (started|processed)|closeChunks started|phase .*)$/;

/** A start of an item by a run of the batch, with the state of that run on the Temporal server at this time. */
export interface ItemStart {
  readonly run: Run;
  readonly batch: Run;
  readonly memo: BatchMemo;
  /** The board in the latest heartbeat of the activity. */
  readonly kept: BatchBoard | null;
}

/** A world with one batch and its jobs. */
export class BatchWorld extends World<BatchPlan, BatchOperation> {
  readonly starts: ItemStart[] = [];
  /** The deleted runs, and the times of their deletion. */
  readonly deleted = new Map<Run, number>();
  /** The batch and its outcomes at the end of the world; null if they are older than the retention. */
  finalReport: { readonly batch: BatchDescription; readonly ends: readonly BatchItemResult[] } | null = null;
  /** The workflow IDs of the items, in file order. */
  readonly names: readonly string[];
  private readonly recordedRuns = new Set<Run>();
  private readonly calls = this.createSlowCalls();
  private readonly handle = new BatchHandle(this.calls, BATCH_ID);
  private script: Promise<void> | undefined;
  private isDone = false;
  /** For this number of seconds, the batch has been paused without a pending operation. */
  private pausedForSeconds = 0;

  /** The progress of a batch is compared only at its end. */
  protected override queryOf(): undefined {
    return undefined;
  }

  /** The operations of clients and operators, most of them with the real client. */
  protected override readonly operationHandlers = {
    start: ({ times, options }) => Promise.all(Array.from({ length: times }, () => this.start(options))),
    terminate: async ({ startsAfterMs }) => {
      this.latest?.terminate();
      if (startsAfterMs === null) return undefined;
      await this.clock.sleep(startsAfterMs);
      return this.start({});
    },
    cancel: ({ cancelRunning }) => this.handle.cancel({ cancelRunning }),
    pause: async ({ ms }) => {
      await this.handle.pause();
      await this.clock.sleep(ms);
      return this.handle.resume();
    },
    resume: () => this.handle.resume(),
    'set concurrency': ({ concurrency }) => this.handle.setConcurrency(concurrency),
    reset: ({ share }) => {
      const { latest } = this;
      const points = latest?.resetPoints() ?? [];
      const point = points[Math.floor(share * points.length)];
      return latest && point !== undefined ? this.server.reset(latest, point)?.runId : undefined;
    },
    retry: ({ includeUnknown }) => this.handle.retry({ includeUnknown }),
    results: () => this.handle.listResults(),
    foreign: ({ item, samePrompt }) => {
      const chosen = this.batch.items[Math.floor(item * this.names.length)];
      if (chosen === undefined) return undefined;
      const prompt = samePrompt ? chosen.request.prompt : 'Another message.';
      const request = { ...chosen.request, prompt, requestId: toItemRequestId(BATCH_ID, chosen) };
      return this.calls.run({}, (client) => startFollowUp(client, TASK_QUEUES.followUp, request));
    },
    'retry item': ({ item }) =>
      this.performOnItem(item, false, ({ workflowId }) =>
        this.calls.run({}, (client, signal) => retryFollowUp(client, { workflowId }, signal)),
      ),
    'delete item': ({ item }) =>
      this.performOnItem(item, false, (run) => {
        this.deleted.set(run, this.clock.now);
        this.server.delete(run);
      }),
    'cancel item': ({ item }) => this.performOnItem(item, true, (run) => run.requestCancel()),
    'terminate item': ({ item }) => this.performOnItem(item, true, (run) => run.terminate()),
  } satisfies World<BatchPlan, BatchOperation>['operationHandlers'];

  private constructor(
    plan: BatchPlan,
    workflows: ReusableVMWorkflowCreator,
    private readonly batch: CheckedBatch,
  ) {
    super(plan, workflows);
    this.names = batch.items.map((item) => {
      const { projectId, jobId } = item.request;
      return followUpWorkflowId(projectId, jobId, toItemRequestId(BATCH_ID, item));
    });
  }

  static async create(plan: BatchPlan, workflows: ReusableVMWorkflowCreator): Promise<BatchWorld> {
    const requests = plan.items.map(({ job, ...item }) => {
      const { projectId = '', jobId = '' } = plan.jobs[job] ?? {};
      return { projectId, jobId, ...plan.request, ...item };
    });
    return new BatchWorld(
      plan,
      workflows,
      await checkBatch(requests, { batchId: BATCH_ID, allowDuplicates: true }),
    );
  }

  get runs(): readonly Run[] {
    return this.server.runs;
  }

  get requests(): readonly Request[] {
    return [...this.services.values()].flatMap((service) => service.requests);
  }

  /** The requests of each project. The requests of one job are in the order in which they were made. */
  get requestsOfProjects(): readonly (readonly Request[])[] {
    const projects = new Map<string, Request[]>();
    for (const [path, { requests }] of this.services) {
      const project = path.split('/')[3] ?? '';
      projects.set(project, [...(projects.get(project) ?? []), ...requests]);
    }
    return [...projects.values()];
  }

  override get latest(): Run | undefined {
    return this.runs.findLast(({ workflowId }) => workflowId === BATCH_WORKFLOW_ID);
  }

  protected override startPlan(): void {
    const { concurrency, maxFailures } = this.plan;
    this.performAsClient({ kind: 'start', times: 1, options: { concurrency, maxFailures } });
    this.script = this.runUntilQuiet().finally(() => (this.isDone = true));
    this.script.catch(() => undefined);
  }

  protected override hasEnded(): boolean {
    return this.isDone;
  }

  protected override async finish(): Promise<void> {
    await this.script;
  }

  private async runUntilQuiet(): Promise<void> {
    await this.waitUntilQuiet();
    for (let again = 0; this.plan.isRestartedUntilDone && again < 2; again += 1) {
      if (this.latest?.status === 'WorkflowExecutionCompleted') break;
      this.performAsClient({ kind: 'start', times: 1, options: { maxFailures: null } });
      await this.waitUntilQuiet();
    }
    do {
      await this.waitUntilQuiet();
      await this.clock.sleep(UNTIL_LISTED_MS);
    } while (!this.isQuiet());
    // The batch may be older than the retention.
    if (this.server.find(BATCH_WORKFLOW_ID) === undefined) return;
    const batch = await this.calls.run({}, (client) => findBatch(client, BATCH_ID));
    try {
      this.finalReport = { batch, ends: await this.handle.listResults() };
    } catch (error) {
      // The items may be older than the retention.
      if (!isClientError(error)) throw error;
      this.appendLog('client', `the results are not available: ${String(error)}`);
    }
  }

  /** Runs the operation outside of the process that reached the point, and outside of the deadline of the process's call. */
  protected override perform(operation: Exclude<BatchOperation, MachineOperation>): Promise<unknown> {
    return new Promise((resolve) => {
      this.clock.after(0, () => resolve(super.perform(operation)));
    });
  }

  /** @param share the position of the item in the file, from 0 to 1 */
  private performOnItem(share: number, isWantedOpen: boolean, work: (run: Run) => unknown): unknown {
    const run = this.server.find(this.names[Math.floor(share * this.names.length)] ?? '');
    if (run?.isOpen !== isWantedOpen) return NO_SUCH_ITEM;
    return work(run) ?? run.runId;
  }

  private start(options: RunOptions) {
    const context = { taskQueue: TASK_QUEUES.followUp, options, partBytes: this.plan.partBytes ?? undefined };
    return this.calls.run({}, (client, signal) => startBatch({ ...context, client, signal }, this.batch));
  }

  protected override where(): string {
    return '';
  }

  protected override passes(point: string): boolean {
    if (point === 'start recorded') this.recordItemStart();
    return LOGGED_POINTS.test(point);
  }

  /** Creates client calls over a connection that is sometimes slow. */
  private createSlowCalls(): CallRunner {
    const { server, random, clock, plan } = this;
    const pause = (method: string) =>
      clock.sleep(random.between(`their ${method}`, 1, random.chance('is slow', 0.15) ? plan.paceMs : 60));
    const reach = async <T>(method: string, answer: () => T): Promise<T> => {
      await pause(method);
      await new Promise<void>((resolve) => server.whenAvailable(resolve));
      const value = answer();
      await pause(method);
      return value;
    };
    const named = { namespace: `${server.namespace} of client`, identity: 'client' };
    return new CallRunner(createClient(server, reach, named), TASK_QUEUES.followUp);
  }

  private isQuiet(): boolean {
    const isOpen = ({ isOpen, start }: Run) => isOpen && !WORKFLOWS_WITHOUT_WORKER.has(start.workflowType);
    return this.pendingCount === 0 && !this.runs.some(isOpen);
  }

  /** Waits until all workflows have ended and no operation is pending. */
  private async waitUntilQuiet(): Promise<void> {
    while (!this.isQuiet()) {
      await this.clock.sleep(1_000);
      this.recordEnds();
      this.resumeForgottenPause();
      if (this.failures.length > MAX_FAILURES) return;
    }
  }

  /** Resumes a batch that stays paused because the call of a pause failed or a reset applied the pause again. */
  private resumeForgottenPause(): void {
    const { latest } = this;
    const memo = fromPayload(latest?.memo[MEMO_BATCH]) as BatchMemo | undefined;
    const isPaused = latest?.isOpen === true && memo?.isPaused === true;
    this.pausedForSeconds = isPaused && this.pendingCount === 0 ? this.pausedForSeconds + 1 : 0;
    if (this.pausedForSeconds < LONGEST_PAUSE_S) return;
    this.pausedForSeconds = 0;
    this.performAsClient({ kind: 'resume' });
  }

  private recordItemStart(): void {
    const run = this.runs.at(-1);
    const batch = this.runs.find(({ runId }) => runId === run?.start.requester?.by);
    if (run === undefined || batch?.workflowId !== BATCH_WORKFLOW_ID || this.starts.at(-1)?.run === run)
      return;
    const memo = fromPayload(batch.memo[MEMO_BATCH]) as BatchMemo;
    const activity = [...batch.activities.values()].find(({ name }) => name === 'runItems');
    const kept = (fromPayload(activity?.details?.[0]) as BatchBoard | undefined) ?? null;
    this.starts.push({ run, batch, memo, kept });
    this.appendLog(
      batch.runId,
      `starts item ${this.names.indexOf(run.workflowId)}, ${run.workflowId}, as ${run.runId}`,
    );
  }

  private recordEnds(): void {
    for (const run of this.runs) {
      if (run.isOpen || this.recordedRuns.has(run)) continue;
      this.recordedRuns.add(run);
      const failureType = run.end.failure?.applicationFailureInfo?.type ?? '';
      this.appendLog(run.runId, `${run.workflowId}: ${run.status.slice(17)} ${failureType}`);
      if (run.status !== 'WorkflowExecutionContinuedAsNew')
        this.reached(run.workflowId === BATCH_WORKFLOW_ID ? 'batch ended' : 'item ended');
    }
  }
}
