import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { BatchHandle } from '../../../src/client/batch/batch-client';
import { checkBatch, type CheckedBatch, type RunOptions } from '../../../src/client/batch/check';
import { BatchEnds, type BatchReport, findBatch } from '../../../src/client/batch/describe';
import { retryBatch, startBatch } from '../../../src/client/batch/start';
import { Calls } from '../../../src/client/call';
import { retryFollowUp, startFollowUp } from '../../../src/client/start';
import { requestIdOf } from '../../../src/core/batch/items';
import type { ItemEnd } from '../../../src/core/batch/progress';
import { type BatchMemo, CHUNK_WORKFLOW, MEMO_BATCH, type Position } from '../../../src/core/batch/state';
import { FollowUpError } from '../../../src/core/errors';
import { batchWorkflowId, followUpWorkflowId } from '../../../src/core/ids';
import type { MachineAct } from '../acts';
import type { Request } from '../agent-service';
import { fromPayload } from '../temporal/history';
import type { Run } from '../temporal/run';
import { clientOf } from '../temporal/service';
import { TASK_QUEUES, World } from '../world';
import type { BatchAct, BatchPlan } from './plan';

const BATCH_ID = 'batch';
export const BATCH_WORKFLOW_ID = batchWorkflowId(BATCH_ID);

/** A workflow task that fails is tried again for ever. */
const MOST_BROKEN = 20;

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
  readonly kept: Position | null;
}

/** One batch and its jobs. */
export class BatchWorld extends World<BatchPlan, BatchAct> {
  readonly starts: StartOfItem[] = [];
  /** When a run was deleted. */
  readonly deleted = new Map<Run, number>();
  /** What is told of it at the end; null where the server has forgotten it. */
  told: { readonly batch: BatchReport; readonly ends: readonly ItemEnd[] } | null = null;
  /** The workflow ids of the items, in the order of the file. */
  readonly names: readonly string[];
  private readonly noted = new Set<Run>();
  private readonly calls = this.newCalls();
  private script: Promise<void> | undefined;
  private isDone = false;
  /** In seconds, while nobody does anything. */
  private pausedFor = 0;

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

  override get latest(): Run | undefined {
    return this.runs.findLast(({ workflowId }) => workflowId === BATCH_WORKFLOW_ID);
  }

  protected override begin(): void {
    const { concurrency, tolerate } = this.plan;
    this.letPeople({ kind: 'start', times: 1, options: { concurrency, tolerate } });
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
      this.letPeople({ kind: 'start', times: 1, options: { tolerate: null } });
      await this.quiet();
    }
    await this.clock.sleep(UNTIL_LISTED_MS);
    if (this.server.latest(BATCH_WORKFLOW_ID) === undefined) return;
    const { client } = this.calls;
    const batch = await findBatch(client, BATCH_ID);
    try {
      this.told = { batch, ends: await new BatchEnds(client).news(batch) };
    } catch (error) {
      // Its items may be older than the retention.
      if (!(error instanceof FollowUpError)) throw error;
      this.say('people', `the results: ${error.message}`);
    }
  }

  /** What people do, by the real client. Not in the name of the process that has reached the point, nor within the deadline of its call. */
  protected override carryOut(act: Exclude<BatchAct, MachineAct>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.clock.after(0, () => void this.byClient(act).then(resolve, reject));
    });
  }

  private async byClient(act: Exclude<BatchAct, MachineAct>): Promise<unknown> {
    const { calls, server, clock, batch, latest } = this;
    const handle = new BatchHandle(calls, BATCH_ID);
    switch (act.kind) {
      case 'start':
        return Promise.all(Array.from({ length: act.times }, () => this.start(act.options)));
      case 'terminate':
        latest?.terminate();
        if (act.startsAfterMs === null) return undefined;
        await clock.sleep(act.startsAfterMs);
        return this.start({});
      case 'cancel':
        return handle.cancel({ followUps: act.followUps });
      case 'pause':
        await handle.pause();
        await clock.sleep(act.ms);
        return (await handle.resume()).state;
      case 'resume':
        return (await handle.resume()).state;
      case 'set concurrency':
        return (await handle.setConcurrency(act.concurrency)).state;
      case 'reset': {
        const points = latest?.resetPoints() ?? [];
        const point = points[Math.floor(act.share * points.length)];
        return { to: point && latest && server.reset(latest, point)?.runId };
      }
      case 'retry': {
        const options = { includeUnknown: act.includeUnknown };
        return calls.run({}, (client, signal) =>
          retryBatch({ client, taskQueue: TASK_QUEUES.followUp, options, signal }, BATCH_ID),
        );
      }
      case 'results':
        return (await handle.settled()).length;
      case 'foreign': {
        const item = batch.items[Math.floor(act.item * batch.items.length)];
        if (item === undefined) return undefined;
        const prompt = act.samePrompt ? item.request.prompt : 'Another message.';
        const request = { ...item.request, prompt, requestId: requestIdOf(BATCH_ID, item) };
        return calls.run({}, (client) => startFollowUp(client, TASK_QUEUES.followUp, request));
      }
      default: {
        const run = server.latest(this.names[Math.floor(act.item * batch.items.length)] ?? '');
        if (run === undefined || run.isOpen === /^(retry|delete)/.test(act.kind)) return 'nothing to do';
        if (act.kind === 'retry item')
          return calls.run({}, (client, signal) => retryFollowUp(client, run.workflowId, signal));
        if (act.kind === 'delete item') {
          this.deleted.set(run, clock.now);
          server.delete(run);
        } else if (act.kind === 'cancel item') run.requestCancel();
        else run.terminate();
        return run.runId;
      }
    }
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
    const runs = () => this.runs.filter(({ start }) => start.workflowType !== CHUNK_WORKFLOW);
    while (this.waitsFor > 0 || runs().some(({ isOpen }) => isOpen)) {
      await this.clock.sleep(1_000);
      this.noteEnds();
      this.resumeAtLast();
      if (this.isLate || this.broken.length > MOST_BROKEN) return;
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
    if (run === undefined || batch === undefined || this.starts.at(-1)?.run === run) return;
    const memo = fromPayload(batch.memo[MEMO_BATCH]) as BatchMemo;
    const activity = [...batch.activities.values()].find(({ name }) => name === 'runItems');
    const kept = (fromPayload(activity?.details?.[0]) as Position | undefined) ?? null;
    this.starts.push({ run, batch, memo, kept });
    this.say(batch.runId, `starts ${run.workflowId} as ${run.runId}`);
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
