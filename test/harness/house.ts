import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  Client,
  Connection,
  type WorkflowHandle,
  type WorkflowHandleWithFirstExecutionRunId,
  WorkflowFailedError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { DefaultLogger, NativeConnection, Runtime } from '@temporalio/worker';
import { createActivities } from '../../src/activities';
import { keyFromText } from '../../src/agent-api/api-key';
import { createAgentApi } from '../../src/agent-api/client';
import { FOLLOW_UP_WORKFLOW, QUERY_PROGRESS } from '../../src/contract/names';
import type { FollowUpProgress } from '../../src/contract/progress';
import type { FollowUpRequest } from '../../src/contract/request';
import type { FailureDetails, FollowUpResult } from '../../src/contract/result';
import { followUpWorkflowId } from '../../src/contract/workflow-id';
import { type NewJob, type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox';
import { FollowUpWorkers } from '../../src/worker/workers';
import { temporal } from './temporal';

// Failures of follow-ups are what many tests are about; only what breaks the worker itself is news.
Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: 'ERROR', forward: {} } },
});

/** Times that let a whole follow-up pass within a test, in the proportions of the defaults. */
export const QUICK = {
  deadline: '20s',
  polling: { initial: '200ms', growth: 0.1, maximum: '1s', jitter: 0.1 },
  reconcile: '1500ms',
  settle: '1s',
  confirm: '1500ms',
} as const;

export interface HouseOptions {
  readonly sandbox?: SandboxOptions;
  /** The limit of one HTTP exchange. @default 2000 */
  readonly httpTimeoutMs?: number;
  /** Where the agent service is looked for. @default the sandbox's base URL */
  readonly baseUrl?: string;
  /** The Temporal server. @default the one that all test files share */
  readonly address?: string;
  /** The workflow bundle. @default the one that is made once for a test run */
  readonly bundlePath?: string;
}

/** A sandbox, the three workers of a worker process with queues of their own, and a client, on the shared server. */
export class House {
  private constructor(
    readonly sandbox: Sandbox,
    readonly client: Client,
    readonly taskQueue: string,
    readonly close: () => Promise<void>,
  ) {}

  static async open(options: HouseOptions = {}): Promise<House> {
    const address = options.address ?? temporal().address;
    const bundlePath = options.bundlePath ?? temporal().bundlePath;
    const namespace = 'default';
    const timeoutMs = options.httpTimeoutMs ?? 2_000;
    const sandbox = await startSandbox({ seedJobs: false, turnMs: 1_500, ...options.sandbox });
    const name = randomUUID().slice(0, 8);
    const taskQueues = { followUp: `follow-up-${name}`, read: `read-${name}`, send: `send-${name}` };
    const baseUrl = options.baseUrl ?? sandbox.baseUrl;
    const apiKey = keyFromText(sandbox.apiKey);
    const agentApi = createAgentApi({ baseUrl, apiKey, timeoutMs });
    const native = await NativeConnection.connect({ address });
    const connection = await Connection.connect({ address });
    const workers = await FollowUpWorkers.create(
      native,
      { temporal: { namespace }, agentApi: { timeoutMs }, taskQueues },
      { workflowBundle: { codePath: bundlePath } },
      createActivities(agentApi, {
        readTaskQueue: taskQueues.read,
        sendTaskQueue: taskQueues.send,
        httpTimeoutMs: timeoutMs,
      }),
    );
    // Loads what undici loads at its first use: jest forbids that between the steps of concurrent tests.
    const nobody = { projectId: 'warm-up', jobId: 'nobody' };
    await agentApi.getJob(nobody);
    await agentApi.sendMessage({ ...nobody, prompt: 'nothing' });
    const stop = new AbortController();
    const running = workers.run(stop.signal, () => undefined);
    const close = async () => {
      stop.abort();
      // What a test has left held would keep its worker from draining.
      await sandbox.close();
      await running;
      await agentApi.close();
      await native.close();
      await connection.close();
    };
    return new House(sandbox, new Client({ connection, namespace }), taskQueues.followUp, close);
  }

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
    private readonly house: House,
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
    const giveUpAt = Date.now() + 20_000;
    for (;;) {
      const progress = await this.handle.query<FollowUpProgress>(QUERY_PROGRESS);
      if (wanted(progress)) return progress;
      if (Date.now() > giveUpAt) throw new Error(`the progress stayed ${JSON.stringify(progress)}`);
      await sleep(50);
    }
  }

  /** How it failed. @throws Error when it did not fail by a failure of its own. */
  async failure(): Promise<{ type: string; message: string; details: FailureDetails }> {
    return failureOf(this.handle);
  }

  /** The POSTs that reached the service, in order. */
  posts() {
    return this.house.sandbox.journal.entries({ ...this.key, operation: 'message' });
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
