import { randomUUID } from 'node:crypto';
import {
  type Client,
  type WorkflowHandle,
  type WorkflowHandleWithFirstExecutionRunId,
  WorkflowFailedError,
} from '@temporalio/client';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { FollowUpClient, type FollowUpHandle } from '../../src/entries/client';
import { FOLLOW_UP_WORKFLOW, MEMO_RECEIPT, QUERY_PROGRESS } from '../../src/contract/names';
import type { FailureDetails, FollowUpProgress, FollowUpResult, Receipt } from '../../src/contract/result';
import type { FollowUpRequest } from '../../src/contract/request';
import { followUpWorkflowId } from '../../src/contract/ids';
import type { TaskQueues } from '../../src/entries/plugin';
import type { FaultSetting, JobChange, JobKey, NewJob, Sandbox } from '../../sandbox';
import { eventually } from '../../tools/lib/eventually';

/**
 * Durations that let a whole follow-up end within a test, in the proportions of the defaults. The deadline is far away, because
 * tests of the deadline set their own.
 */
export const FAST_OPTIONS = {
  whenActive: 'send',
  deadline: '10m',
  polling: { initial: '200ms', growth: 0.1, maximum: '1s', jitter: 0.1 },
  reconcileTimeout: '1500ms',
  prLinkTimeout: '1s',
  maxStaleness: '1500ms',
} as const;

/** A turn that ends only when the test changes the job. */
export const ENDLESS_TURN = { turn: { durationMs: null } } as const;

export const ACCEPTED_BY_RESPONSE = { verdict: 'accepted', confirmedBy: 'response', sends: 1 };
export const ACCEPTED_BY_READ = { verdict: 'accepted', confirmedBy: 'read', sends: 1 };
export const UNKNOWN_DELIVERY = { verdict: 'unknown', confirmedBy: null, sends: 1 };
export const NOT_SENT_DELIVERY = { verdict: 'not-sent', confirmedBy: null, sends: 0 };

/** A fault of the sandbox for the requests to one job. */
export type JobFault = Omit<FaultSetting, 'projectId' | 'jobId'>;
type JournalFilter = NonNullable<Parameters<Sandbox['journal']['entries']>[0]>;

/** Returns names of task queues that no other test uses. */
export function newTaskQueues(): TaskQueues {
  const name = randomUUID().slice(0, 8);
  return { followUp: `follow-up-${name}`, read: `read-${name}`, send: `send-${name}` };
}

/** Returns the variables that set the task queues of a worker and of the CLI. */
export function taskQueueVariables({ followUp, read, send }: TaskQueues) {
  return { FOLLOW_UP_TASK_QUEUE: followUp, AGENT_API_READ_TASK_QUEUE: read, AGENT_API_SEND_TASK_QUEUE: send };
}

/** Starts the follow-ups of a test, with a sandbox that has the jobs, and with clients of the Temporal server. */
export class FollowUpTestClient {
  readonly taskQueue: string;
  readonly followUps: FollowUpClient;

  /** @param defaultOptions the options of every request that does not set them */
  constructor(
    readonly sandbox: Sandbox,
    readonly client: Client,
    readonly taskQueues: TaskQueues,
    private readonly defaultOptions: Partial<FollowUpRequest> = FAST_OPTIONS,
  ) {
    this.taskQueue = taskQueues.followUp;
    this.followUps = new FollowUpClient(client, { taskQueue: this.taskQueue });
  }

  /** Adds a job with these faults and starts a follow-up to it. */
  async follow(
    job: NewJob = {},
    options: Partial<FollowUpRequest> = {},
    ...faults: JobFault[]
  ): Promise<FollowUpUnderTest> {
    return this.send({ ...this.addJob(job, ...faults), ...options });
  }

  /** @param job by default, the job's turns end with their second read, independent of time */
  addJob(job: NewJob = {}, ...faults: JobFault[]): JobKey {
    const { projectId, jobId } = this.sandbox.addJob({
      projectId: `project-${randomUUID().slice(0, 8)}`,
      turn: { reads: 2 },
      ...job,
    });
    for (const fault of faults) this.sandbox.setFault({ ...fault, projectId, jobId });
    return { projectId, jobId };
  }

  /** Returns a request to a new job. */
  newRequest(job?: NewJob) {
    return { ...this.addJob(job), ...this.defaultRequest() };
  }

  /** Starts a follow-up to a job that may be missing. */
  async send(options: Partial<FollowUpRequest> & JobKey): Promise<FollowUpUnderTest> {
    const request = { ...this.defaultRequest(), ...options };
    const workflowId = followUpWorkflowId(request.projectId, request.jobId, request.requestId);
    return new FollowUpUnderTest(this, request, await this.start(workflowId, request));
  }

  /** Starts the workflow with any input, as other Temporal clients can. */
  async start(workflowId: string, input: unknown): Promise<WorkflowHandleWithFirstExecutionRunId> {
    return this.client.workflow.start(FOLLOW_UP_WORKFLOW, {
      taskQueue: this.taskQueue,
      workflowId,
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      args: [input],
    });
  }

  /** Returns the POSTs to a job, or to all jobs of a project, that reached the agent service, in their order. */
  posts({ projectId, jobId }: Pick<JobKey, 'projectId'> & Partial<JobKey>) {
    const key = jobId === undefined ? { projectId } : { projectId, jobId };
    return this.sandbox.journal.entries({ ...key, operation: 'message' });
  }

  /** Returns the fields that every request of a test has, with a new request ID. */
  private defaultRequest() {
    return { prompt: 'Fix the broken links.', requestId: randomUUID().slice(0, 8), ...this.defaultOptions };
  }
}

/** A follow-up that a test has started. */
export class FollowUpUnderTest {
  readonly key: JobKey;

  constructor(
    private readonly caller: FollowUpTestClient,
    readonly request: FollowUpRequest & { readonly requestId: string },
    readonly handle: WorkflowHandleWithFirstExecutionRunId,
  ) {
    this.key = { projectId: request.projectId, jobId: request.jobId };
  }

  get firstRunId(): string {
    return this.handle.firstExecutionRunId;
  }

  async result(): Promise<FollowUpResult> {
    return (await this.handle.result()) as FollowUpResult;
  }

  /** Returns the follow-up's failure. @throws Error if the follow-up did not fail, or failed with a failure of Temporal */
  async failure(): Promise<{ type: string; message: string; details: FailureDetails }> {
    return fetchFailure(this.handle);
  }

  /** Returns how the follow-up ended, and for each POST whether the agent service has processed it. */
  async outcomeSummary() {
    const { receipt, ...outcome } = await this.result().then(
      ({ status, receipt }) => ({ status, receipt }),
      () => this.failure().then(({ type, details: { receipt } }) => ({ type, receipt })),
    );
    const { delivery, evidence } = receipt;
    return { ...outcome, delivery, evidence, posts: this.processedFlags() };
  }

  /** Returns the receipt in the memo of a cancelled follow-up. @throws Error if the follow-up was not cancelled */
  async cancelledReceipt(): Promise<Receipt> {
    const error: unknown = await this.handle.result().catch((reason: unknown) => reason);
    if (!(error instanceof WorkflowFailedError) || !(error.cause instanceof CancelledFailure))
      throw new Error('The follow-up was not cancelled.', { cause: error });
    return (await this.handle.describe()).memo?.[MEMO_RECEIPT] as Receipt;
  }

  /** Waits until the progress meets a condition, and returns the progress. */
  async waitForProgress(wanted: (progress: FollowUpProgress) => boolean): Promise<FollowUpProgress> {
    const progress = () => this.handle.query<FollowUpProgress>(QUERY_PROGRESS);
    return eventually('the progress meets the condition', progress, { until: wanted });
  }

  /** Makes an update of the follow-up's latest run. */
  async update(name: string, ...args: unknown[]): Promise<FollowUpProgress> {
    const latest = this.caller.client.workflow.getHandle(this.handle.workflowId);
    return latest.executeUpdate<FollowUpProgress, [unknown]>(name, { args: args as [unknown] });
  }

  changeJob(change: JobChange): void {
    this.caller.sandbox.changeJob(this.key, change);
  }

  /** Lets the sandbox respond to the held requests. */
  releaseHeldRequests(): void {
    this.caller.sandbox.release(this.key);
  }

  /** Waits until at least one request, or `atLeast` requests, of this kind have reached the agent service. */
  waitForRequest(filter: JournalFilter, options?: { readonly atLeast: number }) {
    return this.caller.sandbox.journal.waitFor({ ...this.key, ...filter }, options);
  }

  posts() {
    return this.caller.posts(this.key);
  }

  /** Returns for each POST whether the agent service has processed it. */
  processedFlags(): boolean[] {
    return this.posts().map(({ processed }) => processed);
  }

  /** Returns how many reads of the job reached the agent service, including the baseline read. */
  readCount(): number {
    return this.caller.sandbox.journal.entries({ ...this.key, operation: 'get' }).length;
  }
}

export async function fetchFailure(handle: WorkflowHandle) {
  const error: unknown = await handle.result().catch((reason: unknown) => reason);
  if (!(error instanceof WorkflowFailedError) || !(error.cause instanceof ApplicationFailure)) {
    throw new Error('The follow-up did not end with an ApplicationFailure.', { cause: error });
  }
  const { type, message, details } = error.cause;
  return { type: type ?? '', message, details: details?.[0] as FailureDetails };
}

/** Returns the progress that a worker reports. On a busy machine, a worker may not respond to the first query in time. */
export async function progressFromWorker(handle: FollowUpHandle): Promise<FollowUpProgress> {
  return eventually('a worker reports the progress', async () => {
    const report = await handle.progress();
    return report.from === 'worker' && report.progress;
  });
}
