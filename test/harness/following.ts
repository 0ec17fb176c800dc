import { randomUUID } from 'node:crypto';
import {
  type Client,
  type WorkflowHandle,
  type WorkflowHandleWithFirstExecutionRunId,
  WorkflowFailedError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { FOLLOW_UP_WORKFLOW, QUERY_PROGRESS } from '../../src/core/names';
import type { FailureDetails, FollowUpProgress, FollowUpResult } from '../../src/core/result';
import type { FollowUpRequest } from '../../src/core/request';
import { followUpWorkflowId } from '../../src/core/ids';
import type { NewJob, Sandbox } from '../../sandbox';
import { eventually } from './eventually';

/** Times that let a whole follow-up pass within a test, in the proportions of the defaults. */
export const QUICK = {
  deadline: '20s',
  polling: { initial: '200ms', growth: 0.1, maximum: '1s', jitter: 0.1 },
  reconcile: '1500ms',
  settle: '1s',
  confirm: '1500ms',
} as const;

/** Who starts follow-ups in a test: a sandbox with the jobs, and a client of the Temporal server. */
export class FollowUpCaller {
  constructor(
    readonly sandbox: Sandbox,
    readonly client: Client,
    readonly taskQueue: string,
  ) {}

  /** Adds a job and starts a follow-up to it. */
  async follow(job: NewJob = {}, asked: Partial<FollowUpRequest> = {}): Promise<Following> {
    const { projectId, jobId } = this.sandbox.addJob({
      projectId: `project-${randomUUID().slice(0, 8)}`,
      ...job,
    });
    return this.send({ projectId, jobId, ...asked });
  }

  /** Starts a follow-up to a job that is there, or not. */
  async send(asked: Partial<FollowUpRequest> & { projectId: string; jobId: string }): Promise<Following> {
    const request = {
      prompt: 'Fix the broken links.',
      requestId: randomUUID().slice(0, 8),
      ...QUICK,
      ...asked,
    };
    const workflowId = followUpWorkflowId(request.projectId, request.jobId, request.requestId);
    return new Following(this, request, await this.start(workflowId, request));
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
}

/** One follow-up of a test. */
export class Following {
  readonly key: { readonly projectId: string; readonly jobId: string };

  constructor(
    private readonly caller: FollowUpCaller,
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

  /** The progress once it is as wanted. @throws Error when it is not within 20 seconds */
  async progressWhen(wanted: (progress: FollowUpProgress) => boolean): Promise<FollowUpProgress> {
    const progress = () => this.handle.query<FollowUpProgress>(QUERY_PROGRESS);
    return eventually('the progress is as wanted', progress, { until: wanted });
  }

  /** How it failed. @throws Error when it did not fail by a failure of its own. */
  async failure(): Promise<{ type: string; message: string; details: FailureDetails }> {
    return failureOf(this.handle);
  }

  /** The POSTs that reached the service, in order. */
  posts() {
    return this.caller.sandbox.journal.entries({ ...this.key, operation: 'message' });
  }

  /** How many GETs of it reached the service, the one of the baseline included. */
  gets(): number {
    return this.caller.sandbox.journal.entries({ ...this.key, operation: 'get' }).length;
  }

  /** How many messages of it the service has processed. */
  processed(): number {
    return this.posts().filter((entry) => entry.processed).length;
  }
}

export async function failureOf(handle: WorkflowHandle) {
  const error: unknown = await handle.result().catch((reason: unknown) => reason);
  if (!(error instanceof WorkflowFailedError) || !(error.cause instanceof ApplicationFailure)) {
    throw new Error('the follow-up did not end by a failure of its own', { cause: error });
  }
  const { type, message, details } = error.cause;
  return { type: type ?? '', message, details: details?.[0] as FailureDetails };
}
