import { randomUUID } from 'node:crypto';
import {
  type Client,
  type WorkflowHandle,
  type WorkflowHandleWithFirstExecutionRunId,
  WorkflowFailedError,
} from '@temporalio/client';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { FollowUpClient } from '../../src/entries/client';
import { FOLLOW_UP_WORKFLOW, MEMO_RECEIPT, QUERY_PROGRESS } from '../../src/contract/names';
import type { FailureDetails, FollowUpProgress, FollowUpResult, Receipt } from '../../src/contract/result';
import type { FollowUpRequest } from '../../src/contract/request';
import { followUpWorkflowId } from '../../src/contract/ids';
import type { TaskQueues } from '../../src/entries/plugin';
import type { FaultSetting, JobChange, JobKey, NewJob, Sandbox } from '../../sandbox';
import { eventually } from '../../tools/lib/eventually';

/**
 * Times that let a whole follow-up pass within a test, in the proportions of the defaults. The deadline is far away: it is
 * tested where it is given.
 */
export const FAST_OPTIONS = {
  whenActive: 'send',
  deadline: '10m',
  polling: { initial: '200ms', growth: 0.1, maximum: '1s', jitter: 0.1 },
  reconcileTimeout: '1500ms',
  prLinkTimeout: '1s',
  maxStaleness: '1500ms',
} as const;

/** A turn that ends only when the test says so. */
export const ENDLESS_TURN = { turn: { durationMs: null } } as const;

export const ACCEPTED_BY_RESPONSE = { verdict: 'accepted', confirmedBy: 'response', sends: 1 };
export const ACCEPTED_BY_READ = { verdict: 'accepted', confirmedBy: 'read', sends: 1 };
export const UNKNOWN_DELIVERY = { verdict: 'unknown', confirmedBy: null, sends: 1 };
export const NOT_SENT_DELIVERY = { verdict: 'not-sent', confirmedBy: null, sends: 0 };

/** A fault of one job. */
export type JobFault = Omit<FaultSetting, 'projectId' | 'jobId'>;
type JournalFilter = NonNullable<Parameters<Sandbox['journal']['entries']>[0]>;

/** Names of task queues that no other test has. */
export function newTaskQueues(): TaskQueues {
  const name = randomUUID().slice(0, 8);
  return { followUp: `follow-up-${name}`, read: `read-${name}`, send: `send-${name}` };
}

/** The variables that name the task queues to a worker and a starter. */
export function taskQueueVariables({ followUp, read, send }: TaskQueues) {
  return { FOLLOW_UP_TASK_QUEUE: followUp, AGENT_API_READ_TASK_QUEUE: read, AGENT_API_SEND_TASK_QUEUE: send };
}

/** Who starts follow-ups in a test: a sandbox with the jobs, and clients of the Temporal server. */
export class FollowUpTestClient {
  readonly taskQueue: string;
  readonly followUps: FollowUpClient;

  /** @param defaultOptions what each request has that doesn't say otherwise */
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

  /** @param job by default one whose turns end with their second read, whatever time that takes */
  addJob(job: NewJob = {}, ...faults: JobFault[]): JobKey {
    const { projectId, jobId } = this.sandbox.addJob({
      projectId: `project-${randomUUID().slice(0, 8)}`,
      turn: { reads: 2 },
      ...job,
    });
    for (const fault of faults) this.sandbox.setFault({ ...fault, projectId, jobId });
    return { projectId, jobId };
  }

  /** A request to a new job. */
  newRequest(job?: NewJob) {
    return { ...this.addJob(job), ...this.defaultRequest() };
  }

  /** Starts a follow-up to a job that is there, or not. */
  async send(options: Partial<FollowUpRequest> & JobKey): Promise<FollowUpUnderTest> {
    const request = { ...this.defaultRequest(), ...options };
    const workflowId = followUpWorkflowId(request.projectId, request.jobId, request.requestId);
    return new FollowUpUnderTest(this, request, await this.start(workflowId, request));
  }

  /** Starts the workflow with any input at all, as a foreign client may. */
  async start(workflowId: string, input: unknown): Promise<WorkflowHandleWithFirstExecutionRunId> {
    return this.client.workflow.start(FOLLOW_UP_WORKFLOW, {
      taskQueue: this.taskQueue,
      workflowId,
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      args: [input],
    });
  }

  /** The POSTs to a job, or to all of a project, that reached the service, in order. */
  posts({ projectId, jobId }: Pick<JobKey, 'projectId'> & Partial<JobKey>) {
    const key = jobId === undefined ? { projectId } : { projectId, jobId };
    return this.sandbox.journal.entries({ ...key, operation: 'message' });
  }

  /** What each request of a test has, with a name of its own. */
  private defaultRequest() {
    return { prompt: 'Fix the broken links.', requestId: randomUUID().slice(0, 8), ...this.defaultOptions };
  }
}

/** One follow-up of a test. */
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

  /** How it failed. @throws Error when it did not fail by a failure of its own. */
  async failure(): Promise<{ type: string; message: string; details: FailureDetails }> {
    return fetchFailure(this.handle);
  }

  /** How it ended, and whether the service has processed each of its POSTs. */
  async outcomeSummary() {
    const { receipt, ...named } = await this.result().then(
      ({ status, receipt }) => ({ status, receipt }),
      () => this.failure().then(({ type, details: { receipt } }) => ({ type, receipt })),
    );
    const { delivery, evidence } = receipt;
    return { ...named, delivery, evidence, posts: this.processedFlags() };
  }

  /** The receipt that it leaves in its memo when it is cancelled. @throws Error when it ended otherwise */
  async cancelledReceipt(): Promise<Receipt> {
    const error: unknown = await this.handle.result().catch((reason: unknown) => reason);
    if (!(error instanceof WorkflowFailedError) || !(error.cause instanceof CancelledFailure))
      throw new Error('the follow-up was not cancelled', { cause: error });
    return (await this.handle.describe()).memo?.[MEMO_RECEIPT] as Receipt;
  }

  /** The progress once it is as wanted. */
  async waitForProgress(wanted: (progress: FollowUpProgress) => boolean): Promise<FollowUpProgress> {
    const progress = () => this.handle.query<FollowUpProgress>(QUERY_PROGRESS);
    return eventually('the progress is as wanted', progress, { until: wanted });
  }

  /** Makes an update of the latest run. */
  async update(name: string, ...args: unknown[]): Promise<FollowUpProgress> {
    const latest = this.caller.client.workflow.getHandle(this.handle.workflowId);
    return latest.executeUpdate<FollowUpProgress, [unknown]>(name, { args: args as [unknown] });
  }

  changeJob(change: JobChange): void {
    this.caller.sandbox.changeJob(this.key, change);
  }

  /** Answers the requests that are held. */
  releaseHeldRequests(): void {
    this.caller.sandbox.release(this.key);
  }

  /** Waits until so many of such requests have reached the service. */
  waitForRequest(filter: JournalFilter, options?: { readonly atLeast: number }) {
    return this.caller.sandbox.journal.waitFor({ ...this.key, ...filter }, options);
  }

  posts() {
    return this.caller.posts(this.key);
  }

  /** Whether the service has processed each of the POSTs. */
  processedFlags(): boolean[] {
    return this.posts().map(({ processed }) => processed);
  }

  /** How many GETs of it reached the service, the one of the baseline included. */
  readCount(): number {
    return this.caller.sandbox.journal.entries({ ...this.key, operation: 'get' }).length;
  }
}

export async function fetchFailure(handle: WorkflowHandle) {
  const error: unknown = await handle.result().catch((reason: unknown) => reason);
  if (!(error instanceof WorkflowFailedError) || !(error.cause instanceof ApplicationFailure)) {
    throw new Error('the follow-up did not end by a failure of its own', { cause: error });
  }
  const { type, message, details } = error.cause;
  return { type: type ?? '', message, details: details?.[0] as FailureDetails };
}
