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

/** A message so large that five such items don't fit into a batch's input, so that the client stores the items as chunks. */
export const LARGE_PROMPT = 'x'.repeat(256 * 1_024);

/**
 * Options with which a follow-up takes half a second if its turn ends with the second read. The deadline is longer than any test.
 */
export const FASTEST_OPTIONS = {
  whenActive: 'send',
  deadline: '10m',
  polling: { ...FAST_OPTIONS.polling, initial: '100ms' },
  reconcileTimeout: '200ms',
  prLinkTimeout: '100ms',
  maxStaleness: '100ms',
} as const;

/** A batch to new jobs of one project, on the workers of an environment. */
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

  addItem(job: NewJob = {}, overrides: Partial<FollowUpRequest> = {}, ...faults: JobFault[]): JobKey {
    const { projectId } = this;
    return this.addRequest(this.environment.addJob({ projectId, ...job }, ...faults), overrides);
  }

  addItems(count = 0, ...item: Parameters<TestBatch['addItem']>): this {
    for (let added = 0; added < count; added += 1) this.addItem(...item);
    return this;
  }

  addRequest(key: JobKey, overrides: Partial<FollowUpRequest> = {}): JobKey {
    this.requests.push({ ...key, prompt: 'Rebase on main.', ...FASTEST_OPTIONS, ...overrides });
    return key;
  }

  async start(options: Parameters<FollowUpClient['batches']['start']>[1] = {}) {
    return this.batches.start(this.requests, { batchId: this.batchId, ...options });
  }

  /** Starts the batch, and waits until the agent service has processed at least this number of its messages. */
  async startUntilSent(messages: number, options?: Parameters<TestBatch['start']>[0]) {
    const started = await this.start(options);
    await this.waitUntilSent(messages);
    return started;
  }

  /** Starts the batch with its items in the workflow's input, as a schedule or another Temporal client does. */
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

  /** Waits until the agent service has processed at least this number of the batch's messages. */
  async waitUntilSent(atLeast: number): Promise<void> {
    const processed = { projectId: this.projectId, operation: 'message', processed: true } as const;
    await this.environment.sandbox.journal.waitFor(processed, { atLeast });
  }

  get handle(): BatchHandle {
    return this.batches.getHandle(this.batchId);
  }

  async waitForProgress(wanted: (progress: BatchProgress) => boolean): Promise<BatchProgress> {
    return eventually('the progress of the batch meets the condition', async () => {
      const { summary } = await this.handle.progress();
      return summary !== null && wanted(summary) ? summary : null;
    });
  }

  /** Returns the workflow IDs of the items' follow-ups, in the order of the items. */
  async itemIds(): Promise<string[]> {
    const { items } = await checkBatch(this.requests, { batchId: this.batchId });
    return items.map((item) => {
      const { projectId, jobId } = item.request;
      return followUpWorkflowId(projectId, jobId, toItemRequestId(this.batchId, item));
    });
  }

  /** Completes every active job. @param keys by default, all jobs of the batch */
  endTurns(keys: readonly JobKey[] = this.requests): void {
    const { sandbox } = this.environment;
    for (const { projectId, jobId } of keys)
      if (sandbox.job({ projectId, jobId }).job.status === 'active')
        sandbox.changeJob({ projectId, jobId }, { status: 'completed' });
  }

  /** Completes every active job of the batch, and waits for the batch's result. */
  async finish() {
    this.endTurns();
    return this.handle.result();
  }

  /** Returns the number of messages to each job, in the order of the items. */
  messageCounts(): number[] {
    return this.requests.map(({ projectId, jobId }) => this.posts({ projectId, jobId }).length);
  }
}
