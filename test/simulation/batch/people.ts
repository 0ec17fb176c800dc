import { BatchHandle } from '../../../src/client/batch/batch-client';
import { checkBatch, type CheckedBatch } from '../../../src/client/batch/check';
import { retryBatch, startBatch } from '../../../src/client/batch/start';
import type { Calls } from '../../../src/client/call';
import { type NamedRequest, retryFollowUp, startFollowUp } from '../../../src/client/start';
import { requestIdOf } from '../../../src/core/batch/items';
import { batchWorkflowId, followUpWorkflowId } from '../../../src/core/ids';
import type { VirtualClock } from '../clock';
import type { MachineAct } from '../acts';
import type { Run } from '../temporal/run';
import type { TemporalServer } from '../temporal/server';
import { TASK_QUEUES } from '../world';
import type { BatchAct, BatchPlan } from './plan';

export const BATCH_ID = 'batch';

/** What people do to a batch, by the real client. */
export class BatchPeople {
  /** The workflow ids of the items, in their order. */
  names: readonly string[] = [];
  /** When a run was deleted. */
  readonly deleted = new Map<Run, number>();

  constructor(
    private readonly plan: BatchPlan,
    readonly calls: Calls,
    private readonly server: TemporalServer,
    private readonly clock: VirtualClock,
  ) {}

  /** The latest run of the batch. */
  get batchRun(): Run | undefined {
    return this.server.runs.findLast(({ workflowId }) => workflowId === batchWorkflowId(BATCH_ID));
  }

  async checked(): Promise<CheckedBatch> {
    const { items, jobs, request } = this.plan;
    const requests = items.map(({ job, prompt, requestId }) => ({
      ...{ projectId: jobs[job]?.projectId ?? '', jobId: jobs[job]?.jobId ?? '', prompt, ...request },
      ...(requestId === undefined ? {} : { requestId }),
    }));
    const batch = await checkBatch(requests, { batchId: BATCH_ID });
    this.names = batch.items.map((item) => {
      const { projectId, jobId } = item.request;
      return followUpWorkflowId(projectId, jobId, requestIdOf(BATCH_ID, item));
    });
    return batch;
  }

  start(batch: CheckedBatch, options: Pick<Partial<BatchPlan>, 'concurrency' | 'tolerate'>) {
    const { partBytes } = this.plan;
    return this.calls.run({}, (client, signal) =>
      startBatch(
        { client, taskQueue: TASK_QUEUES.followUp, options, signal, partBytes: partBytes ?? undefined },
        batch,
      ),
    );
  }

  async carryOut(act: Exclude<BatchAct, MachineAct>): Promise<unknown> {
    const { calls, server } = this;
    const handle = new BatchHandle(calls, BATCH_ID);
    switch (act.kind) {
      case 'start': {
        const batch = await this.checked();
        return Promise.all(Array.from({ length: act.times }, () => this.start(batch, {})));
      }
      case 'terminate':
        this.batchRun?.terminate();
        if (act.startsAfterMs === null) return undefined;
        await this.clock.sleep(act.startsAfterMs);
        return this.start(await this.checked(), {});
      case 'cancel':
        return handle.cancel({ followUps: act.followUps });
      case 'pause': {
        await handle.pause();
        await this.clock.sleep(act.ms);
        return (await handle.resume()).state;
      }
      case 'resume':
        return (await handle.resume()).state;
      case 'set concurrency':
        return (await handle.setConcurrency(act.concurrency)).state;
      case 'reset': {
        const points = this.batchRun?.resetPoints() ?? [];
        const point = points[Math.floor(act.share * points.length)];
        const run = this.batchRun;
        return { to: run && point !== undefined ? server.reset(run, point)?.runId : undefined };
      }
      case 'retry': {
        const options = { includeUnknown: act.includeUnknown };
        return calls.run({}, (client, signal) =>
          retryBatch({ client, taskQueue: TASK_QUEUES.followUp, options, signal }, BATCH_ID),
        );
      }
      case 'results':
        return (await handle.settled()).length;
      default:
        return this.carryOutFor(act, Math.floor(act.item * this.names.length));
    }
  }

  private async carryOutFor(
    act: Extract<BatchAct, { readonly item: number }>,
    number: number,
  ): Promise<unknown> {
    const { calls, server } = this;
    const workflowId = this.names[number] ?? '';
    const run = server.find(workflowId);
    if (act.kind === 'foreign') {
      const item = (await this.checked()).items[number];
      if (item === undefined) return undefined;
      const prompt = act.samePrompt ? item.request.prompt : 'Another message.';
      const request: NamedRequest = { ...item.request, prompt, requestId: requestIdOf(BATCH_ID, item) };
      const { attached, runId } = await calls.run({}, (client) =>
        startFollowUp(client, TASK_QUEUES.followUp, request),
      );
      return `item ${number}: ${runId}, ${String(attached)}`;
    }
    if (run === undefined || run.isOpen === /^(retry|delete)/.test(act.kind)) return 'nothing to do';
    if (act.kind === 'retry item')
      return calls.run({}, (client, signal) => retryFollowUp(client, workflowId, signal));
    if (act.kind === 'delete item') {
      this.deleted.set(run, this.clock.now);
      server.delete(run);
    } else if (act.kind === 'cancel item') run.requestCancel();
    else run.terminate();
    return `item ${number}: ${run.runId}`;
  }
}
