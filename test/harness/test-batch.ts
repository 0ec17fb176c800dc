import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { type BatchHandle, checkBatch, type FollowUpClient } from '../../src/entries/client';
import { toItemRequestId } from '../../src/batch/items';
import type { BatchInput } from '../../src/batch/memo';
import type { BatchProgress } from '../../src/batch/progress';
import { batchWorkflowId, followUpWorkflowId } from '../../src/contract/ids';
import { BATCH_WORKFLOW } from '../../src/contract/names';
import type { FollowUpRequest } from '../../src/contract/request';
import type { JobKey, NewJob } from '../../sandbox';
import { eventually } from '../../tools/lib/eventually';
import { type FollowUpTestClient, type JobFault, FAST_OPTIONS } from './follow-up-under-test';

/** A message so large that five of them don't fit into a batch's input: they are stored as chunks. */
export const LARGE_PROMPT = 'x'.repeat(256 * 1_024);

/** A follow-up whose turn ends with its second read takes half a second. No deadline is a test's time-out. */
export const FASTEST_OPTIONS = {
  whenActive: 'send',
  deadline: '10m',
  polling: { ...FAST_OPTIONS.polling, initial: '100ms' },
  reconcileTimeout: '200ms',
  prLinkTimeout: '100ms',
  maxStaleness: '100ms',
} as const;

/** A batch to jobs of its own, on the workers of a environment. */
export class TestBatch {
  readonly projectId: string;
  readonly requests: FollowUpRequest[] = [];

  constructor(
    readonly environment: FollowUpTestClient,
    readonly batchId = `batch-${randomUUID().slice(0, 8)}`,
  ) {
    this.projectId = `project-${batchId}`;
  }

  get batches() {
    return this.environment.followUps.batches;
  }

  addItem(job: NewJob = {}, asked: Partial<FollowUpRequest> = {}, ...faults: JobFault[]): JobKey {
    const { projectId } = this;
    return this.addRequest(this.environment.addJob({ projectId, ...job }, ...faults), asked);
  }

  addItems(count = 0, ...item: Parameters<TestBatch['addItem']>): this {
    for (let added = 0; added < count; added += 1) this.addItem(...item);
    return this;
  }

  addRequest(key: JobKey, asked: Partial<FollowUpRequest> = {}): JobKey {
    this.requests.push({ ...key, prompt: 'Rebase on main.', ...FASTEST_OPTIONS, ...asked });
    return key;
  }

  async start(options: Parameters<FollowUpClient['batches']['start']>[1] = {}) {
    return this.batches.start(this.requests, { batchId: this.batchId, ...options });
  }

  /** Starts it, and waits until so many of its messages were processed in all. */
  async startUntilSent(messages: number, options?: Parameters<TestBatch['start']>[0]) {
    const started = await this.start(options);
    await this.waitUntilSent(messages);
    return started;
  }

  /** Starts it with its items in its input, as a schedule or a foreign client does. */
  async startWithInlineItems(input: Partial<BatchInput> = {}): Promise<WorkflowHandle> {
    return this.environment.client.workflow.start(BATCH_WORKFLOW, {
      workflowId: batchWorkflowId(this.batchId),
      taskQueue: this.environment.taskQueue,
      args: [{ items: this.requests, ...input }],
    });
  }

  get workflow(): WorkflowHandle {
    return this.environment.client.workflow.getHandle(batchWorkflowId(this.batchId));
  }

  posts(key: Parameters<FollowUpTestClient['posts']>[0] = { projectId: this.projectId }) {
    return this.environment.posts(key);
  }

  /** Waits until so many messages of the batch were processed. */
  async waitUntilSent(atLeast: number): Promise<void> {
    const processed = { projectId: this.projectId, operation: 'message', processed: true } as const;
    await this.environment.sandbox.journal.waitFor(processed, { atLeast });
  }

  get handle(): BatchHandle {
    return this.batches.getHandle(this.batchId);
  }

  async waitForProgress(wanted: (progress: BatchProgress) => boolean): Promise<BatchProgress> {
    return eventually('the progress of the batch', async () => {
      const { summary } = await this.handle.progress();
      return summary !== null && wanted(summary) ? summary : null;
    });
  }

  /** The workflow ids of its items' follow-ups, in their order. */
  async itemIds(): Promise<string[]> {
    const { items } = await checkBatch(this.requests, { batchId: this.batchId });
    return items.map((item) => {
      const { projectId, jobId } = item.request;
      return followUpWorkflowId(projectId, jobId, toItemRequestId(this.batchId, item));
    });
  }

  /** Ends the turn of every job of these that is in one. */
  endTurns(keys: readonly JobKey[] = this.requests): void {
    const { sandbox } = this.environment;
    for (const { projectId, jobId } of keys)
      if (sandbox.job({ projectId, jobId }).job.status === 'active')
        sandbox.changeJob({ projectId, jobId }, { status: 'completed' });
  }

  /** Ends the turn of every job that is in one, and waits for its end. */
  async finish() {
    this.endTurns();
    return this.handle.result();
  }

  /** Which jobs got how many messages. */
  messageCounts(): number[] {
    return this.requests.map(({ projectId, jobId }) => this.posts({ projectId, jobId }).length);
  }
}
