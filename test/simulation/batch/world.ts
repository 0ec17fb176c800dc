import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { BatchHandle } from '../../../src/client/batch/batch-client';
import { checkBatch, type CheckedBatch, type RunOptions } from '../../../src/client/batch/check';
import { type BatchReport, findBatch } from '../../../src/client/batch/describe';
import { startBatch } from '../../../src/client/batch/start';
import { Calls } from '../../../src/client/call';
import { retryFollowUp, startFollowUp } from '../../../src/client/start';
import { requestIdOf } from '../../../src/batch/items';
import type { BatchItemResult } from '../../../src/batch/progress';
import type { BatchBoard } from '../../../src/batch/board';
import { type BatchMemo, MEMO_BATCH } from '../../../src/batch/memo';
import { batchWorkflowId, followUpWorkflowId } from '../../../src/contract/ids';
import type { MachineAct } from '../acts';
import type { Request } from '../agent-service';
import { fromPayload } from '../temporal/history';
import type { Run } from '../temporal/run';
import { clientOf } from '../temporal/service';
import { isTold, MOST_BROKEN, NEVER_RUN, TASK_QUEUES, World } from '../world';
import type { BatchAct, BatchPlan } from './plan';

const BATCH_ID = 'batch';
export const BATCH_WORKFLOW_ID = batchWorkflowId(BATCH_ID);

/** What is told of an act for which there is no such item. */
export const NOTHING = 'nothing to do';

const LONGEST_PAUSE_S = 120;

/** Longer than lists lag, and than a live reader looks back. */
const UNTIL_LISTED_MS = 90_000;

/** Points that a story tells. */
const TOLD =
  /^(runItems (started|reported)|keep recorded|post (begun|processed)|closeChunks started|phase .*)$/;

/** A start of a follow-up by a run of the batch, with what the server had of that run at this moment. */
export interface StartOfItem {
  readonly run: Run;
  readonly batch: Run;
  readonly memo: BatchMemo;
  /** By the latest heartbeat of the activity. */
  readonly kept: BatchBoard | null;
}

/** One batch and its jobs. */
export class BatchWorld extends World<BatchPlan, BatchAct> {
  readonly starts: StartOfItem[] = [];
  /** When a run was deleted. */
  readonly deleted = new Map<Run, number>();
  /** What is told of it at the end; null where the server has forgotten it. */
  told: { readonly batch: BatchReport; readonly ends: readonly BatchItemResult[] } | null = null;
  /** The workflow ids of the items, in the order of the file. */
  readonly names: readonly string[];
  private readonly noted = new Set<Run>();
  private readonly calls = this.newCalls();
  private readonly handle = new BatchHandle(this.calls, BATCH_ID);
  private script: Promise<void> | undefined;
  private isDone = false;
  /** In seconds, while nobody does anything. */
  private pausedFor = 0;

  /** What people do, by the real client. */
  /** A batch's progress is compared at its end only. */
  protected override queryOf(): undefined {
    return undefined;
  }

  protected override readonly acts = {
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
      const request = { ...chosen.request, prompt, requestId: requestIdOf(BATCH_ID, chosen) };
      return this.calls.run({}, (client) => startFollowUp(client, TASK_QUEUES.followUp, request));
    },
    'retry item': ({ item }) =>
      this.onItem(item, false, ({ workflowId }) =>
        this.calls.run({}, (client, signal) => retryFollowUp(client, workflowId, signal)),
      ),
    'delete item': ({ item }) =>
      this.onItem(item, false, (run) => {
        this.deleted.set(run, this.clock.now);
        this.server.delete(run);
      }),
    'cancel item': ({ item }) => this.onItem(item, true, (run) => run.requestCancel()),
    'terminate item': ({ item }) => this.onItem(item, true, (run) => run.terminate()),
  } satisfies World<BatchPlan, BatchAct>['acts'];

  private constructor(
    plan: BatchPlan,
    workflows: ReusableVMWorkflowCreator,
    private readonly batch: CheckedBatch,
  ) {
    super(plan, workflows);
    this.names = batch.items.map((item) => {
      const { projectId, jobId } = item.request;
      return followUpWorkflowId(projectId, jobId, requestIdOf(BATCH_ID, item));
    });
  }

  static async of(plan: BatchPlan, workflows: ReusableVMWorkflowCreator): Promise<BatchWorld> {
    const requests = plan.items.map(({ job, ...item }) => {
      const { projectId = '', jobId = '' } = plan.jobs[job] ?? {};
      return { projectId, jobId, ...plan.request, ...item };
    });
    return new BatchWorld(plan, workflows, await checkBatch(requests, { batchId: BATCH_ID }));
  }

  get runs(): readonly Run[] {
    return this.server.runs;
  }

  get requests(): readonly Request[] {
    return [...this.services.values()].flatMap((service) => service.requests);
  }

  /** The requests of each project, in the order in which they were asked for. */
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

  protected override begin(): void {
    const { concurrency, maxFailures } = this.plan;
    this.letPeople({ kind: 'start', times: 1, options: { concurrency, maxFailures } });
    this.script = this.untilQuiet().finally(() => (this.isDone = true));
    this.script.catch(() => undefined);
  }

  protected override isOver(): boolean {
    return this.isDone;
  }

  protected override async end(): Promise<void> {
    await this.script;
  }

  private async untilQuiet(): Promise<void> {
    await this.quiet();
    for (let again = 0; this.plan.finishes && again < 2; again += 1) {
      if (this.latest?.status === 'WorkflowExecutionCompleted') break;
      this.letPeople({ kind: 'start', times: 1, options: { maxFailures: null } });
      await this.quiet();
    }
    await this.clock.sleep(UNTIL_LISTED_MS);
    // It may be older than the retention.
    if (this.server.find(BATCH_WORKFLOW_ID) === undefined) return;
    const batch = await this.calls.run({}, (client) => findBatch(client, BATCH_ID));
    try {
      this.told = { batch, ends: await this.handle.listResults() };
    } catch (error) {
      // Its items may be older than the retention.
      if (!isTold(error)) throw error;
      this.say('people', `the results: ${String(error)}`);
    }
  }

  /** Not in the name of the process that has reached the point, nor within the deadline of its call. */
  protected override perform(act: Exclude<BatchAct, MachineAct>): Promise<unknown> {
    return new Promise((resolve) => {
      this.clock.after(0, () => resolve(super.perform(act)));
    });
  }

  /** @param share where in the file it stands, from 0 to 1 */
  private onItem(share: number, isWantedOpen: boolean, work: (run: Run) => unknown): unknown {
    const run = this.server.find(this.names[Math.floor(share * this.names.length)] ?? '');
    if (run?.isOpen !== isWantedOpen) return NOTHING;
    return work(run) ?? run.runId;
  }

  private start(options: RunOptions) {
    const of = { taskQueue: TASK_QUEUES.followUp, options, partBytes: this.plan.partBytes ?? undefined };
    return this.calls.run({}, (client, signal) => startBatch({ ...of, client, signal }, this.batch));
  }

  protected override where(): string {
    return '';
  }

  protected override passes(point: string): boolean {
    if (point === 'start recorded') this.noteStart();
    return TOLD.test(point);
  }

  /** By a connection that is slow now and then. */
  private newCalls(): Calls {
    const { server, luck, clock, plan } = this;
    const pause = (method: string) =>
      clock.sleep(luck.between(`their ${method}`, 1, luck.chance('is slow', 0.15) ? plan.paceMs : 60));
    const reach = async <T>(method: string, answer: () => T): Promise<T> => {
      await pause(method);
      await new Promise<void>((resolve) => server.whenThere(resolve));
      const value = answer();
      await pause(method);
      return value;
    };
    const named = { namespace: `${server.namespace} of people`, identity: 'people' };
    return new Calls(clientOf(server, reach, named), TASK_QUEUES.followUp);
  }

  /** Until all has ended, and nobody does anything more. */
  private async quiet(): Promise<void> {
    const runs = () => this.runs.filter(({ start }) => !NEVER_RUN.has(start.workflowType));
    while (this.waitsFor > 0 || runs().some(({ isOpen }) => isOpen)) {
      await this.clock.sleep(1_000);
      this.noteEnds();
      this.resumeAtLast();
      if (this.broken.length > MOST_BROKEN) return;
    }
  }

  /** A pause may have come without an answer, or again by a reset: nothing must wait for ever. */
  private resumeAtLast(): void {
    const { latest } = this;
    const memo = fromPayload(latest?.memo[MEMO_BATCH]) as BatchMemo | undefined;
    const isPaused = latest?.isOpen === true && memo?.paused === true;
    this.pausedFor = isPaused && this.waitsFor === 0 ? this.pausedFor + 1 : 0;
    if (this.pausedFor < LONGEST_PAUSE_S) return;
    this.pausedFor = 0;
    this.letPeople({ kind: 'resume' });
  }

  private noteStart(): void {
    const run = this.runs.at(-1);
    const batch = this.runs.find(({ runId }) => runId === run?.start.asked?.by);
    if (run === undefined || batch?.workflowId !== BATCH_WORKFLOW_ID || this.starts.at(-1)?.run === run)
      return;
    const memo = fromPayload(batch.memo[MEMO_BATCH]) as BatchMemo;
    const activity = [...batch.activities.values()].find(({ name }) => name === 'runItems');
    const kept = (fromPayload(activity?.details?.[0]) as BatchBoard | undefined) ?? null;
    this.starts.push({ run, batch, memo, kept });
    this.say(
      batch.runId,
      `starts item ${this.names.indexOf(run.workflowId)}, ${run.workflowId}, as ${run.runId}`,
    );
  }

  private noteEnds(): void {
    for (const run of this.runs) {
      if (run.isOpen || this.noted.has(run)) continue;
      this.noted.add(run);
      const why = run.end.failure?.applicationFailureInfo?.type ?? '';
      this.say(run.runId, `${run.workflowId}: ${run.status.slice(17)} ${why}`);
      if (run.status !== 'WorkflowExecutionContinuedAsNew')
        this.reached(run.workflowId === BATCH_WORKFLOW_ID ? 'batch ended' : 'item ended');
    }
  }
}
