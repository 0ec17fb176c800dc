import { randomUUID } from 'node:crypto';
import { type WorkflowHandle, WorkflowNotFoundError } from '@temporalio/client';
import { type BatchHandle, FollowUpClient } from '../../src/client';
import { followUpWorkflowId, pageWorkflowId } from '../../src/core/ids';
import { requestIdOf } from '../../src/core/batch';
import type { BatchProgress } from '../../src/core/batch-workflows';
import type { FollowUpRequest } from '../../src/core/request';
import { eventually } from './eventually';
import { type FollowUpCaller, QUICK } from './following';

/** A turn that ends only when the test says so. */
export const endless = { turn: { durationMs: null } };

/** How long the server gives workers for a workflow task of this one, in seconds. */
export async function taskSeconds(handle: WorkflowHandle): Promise<number> {
  const { raw } = await handle.describe();
  return Number(raw.executionConfig?.defaultWorkflowTaskTimeout?.seconds);
}

type Job = Parameters<FollowUpCaller['sandbox']['addJob']>[0];

/** A batch to jobs of its own, on the workers of a environment. */
export class BatchOfTest {
  readonly batchId = `batch-${randomUUID().slice(0, 8)}`;
  readonly projectId = `project-${this.batchId}`;
  readonly requests: FollowUpRequest[] = [];
  readonly client: FollowUpClient;

  constructor(readonly environment: FollowUpCaller) {
    this.client = new FollowUpClient(environment.client, { taskQueue: environment.taskQueue });
  }

  get batches() {
    return this.client.batches;
  }

  add(job: Job = {}, asked: Partial<FollowUpRequest> = {}): { projectId: string; jobId: string } {
    const { projectId, jobId } = this.environment.sandbox.addJob({ projectId: this.projectId, ...job });
    return this.again({ projectId, jobId }, asked);
  }

  again(key: { projectId: string; jobId: string }, asked: Partial<FollowUpRequest> = {}) {
    this.requests.push({ ...key, prompt: 'Rebase on main.', ...QUICK, deadline: '60s', ...asked });
    return key;
  }

  async start(options: Parameters<FollowUpClient['batches']['start']>[1] = {}) {
    return this.batches.start(await this.batches.check(this.requests, { batchId: this.batchId }), options);
  }

  posts(key: { projectId?: string; jobId?: string } = { projectId: this.projectId }) {
    return this.environment.sandbox.journal.entries({ ...key, operation: 'message' });
  }

  /** Waits until so many messages of the batch were processed, for each as long as the journal waits. */
  async sent(messages: number): Promise<void> {
    const processed = { projectId: this.projectId, operation: 'message', processed: true } as const;
    for (let atLeast = 1; atLeast <= messages; atLeast += 1) {
      await this.environment.sandbox.journal.waitFor(processed, { atLeast });
    }
  }

  get handle(): BatchHandle {
    return this.batches.getHandle(this.batchId);
  }

  async progressWhen(wanted: (progress: BatchProgress) => boolean): Promise<BatchProgress> {
    return eventually('the progress of the batch', async () => {
      const report = await this.handle.progress();
      return report.from === 'worker' && wanted(report.progress) ? report.progress : null;
    });
  }

  /** The follow-up of an item, by its place from 0. */
  async itemHandle(index: number): Promise<WorkflowHandle> {
    const { items } = await this.batches.check(this.requests, { batchId: this.batchId });
    const item = items[index];
    if (item === undefined) throw new Error(`there is no item ${index}`);
    const { projectId, jobId } = item.request;
    const id = followUpWorkflowId(projectId, jobId, requestIdOf(this.batchId, item));
    return this.environment.client.workflow.getHandle(id);
  }

  /** A page of the run that was started last. */
  async pageHandle(page: number): Promise<WorkflowHandle> {
    const { run } = await this.handle.describe();
    return this.environment.client.workflow.getHandle(pageWorkflowId(this.batchId, run, page));
  }

  /** Ends the turn of every job that is in one. */
  endTurns(): void {
    for (const { projectId, jobId } of this.requests) {
      const { job } = this.environment.sandbox.job({ projectId, jobId });
      if (job.status === 'active')
        this.environment.sandbox.changeJob({ projectId, jobId }, { status: 'completed' });
    }
  }

  /** Which jobs got how many messages. */
  messages(): number[] {
    return this.requests.map(({ projectId, jobId }) => this.posts({ projectId, jobId }).length);
  }
}

/** Deletes all runs of a workflow, as the retention of a namespace does some days after its end. */
export async function forget({ client, workflowId }: WorkflowHandle, runId?: string): Promise<void> {
  const { namespace } = client.options;
  const workflowExecution = { workflowId, ...(runId === undefined ? {} : { runId }) };
  await client.workflowService.deleteWorkflowExecution({ namespace, workflowExecution });
  await eventually(`${workflowId} is deleted`, async () => {
    const gone = (error: unknown) => error instanceof WorkflowNotFoundError;
    return client
      .getHandle(workflowId, runId)
      .describe()
      .then(() => false, gone);
  });
}
