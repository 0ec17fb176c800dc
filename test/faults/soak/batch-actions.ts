import { randomUUID } from 'node:crypto';
import { isGrpcServiceError, type WorkflowHandle, WorkflowNotFoundError } from '@temporalio/client';
import { ConflictError, FollowUpClient, hasCode, NoAnswerError, NotFoundError } from '../../../src/client';
import { followUpWorkflowId, pageWorkflowId } from '../../../src/core/ids';
import { requestIdOf } from '../../../src/core/batch';
import { isTransient } from '../../../src/temporal/grpc-status';
import type { ProcessEnvironment } from '../../harness/process-environment';
import type { SoakFile } from './batch-files';

/** The starter dies in the hand-over. */
class StarterDied extends Error {}

/** What the people of the soak may hear, beside the words of a server that is away; anything else is a bug. */
const EXPECTED = [ConflictError, NotFoundError, NoAnswerError, StarterDied, WorkflowNotFoundError];
const EXPECTED_CODES = [
  'ALREADY_ENDED',
  'STILL_RUNNING',
  'BATCH_FORGOTTEN',
  'RESULTS_UNREADABLE',
  'UPDATE_REFUSED',
] as const;

/** Concurrency of the batches, at most. */
export const MOST_OPEN = 6;

/** What people, operators and other programs do to a batch. */
export class BatchActions {
  /** Follow-ups that somebody has reset: they run again, and no batch knows of it. */
  readonly resetItems = new Set<string>();
  private readonly client: FollowUpClient;

  constructor(
    private readonly environment: ProcessEnvironment,
    private readonly random: () => number,
  ) {
    this.client = new FollowUpClient(environment.client, { taskQueue: environment.taskQueue });
  }

  /** By name, each as often as it is to be done. */
  private readonly all: Readonly<Record<string, (file: SoakFile) => Promise<unknown>>> = {
    start: (file) => this.start(file),
    startAgain: (file) => this.start(file),
    // What a second run follows, and what is typed next.
    cancelAndStart: async (file) => {
      await this.batches.getHandle(file.batchId).cancel();
      await this.start(file);
    },
    cancelAndRetry: async ({ batchId }) => {
      const batch = this.batches.getHandle(batchId);
      await batch.cancel();
      await batch.result();
      await batch.retry();
    },
    terminateAndStart: async (file) => {
      await this.terminate(file);
      await this.start(file);
    },
    cancelRunningAndStart: async (file) => {
      await this.batches.getHandle(file.batchId).cancel({ followUps: true });
      await this.start(file);
    },
    retryAgain: ({ batchId }) => this.batches.getHandle(batchId).retry(),
    startEdited: async (file) => this.batches.start(await this.check(file, file.requests.slice(1))),
    dieInTheHandOver: async (file) =>
      this.batches.start(await this.check(file), {
        onPage: () => {
          throw new StarterDied();
        },
      }),
    cancel: ({ batchId }) => this.batches.getHandle(batchId).cancel(),
    cancelRunning: ({ batchId }) => this.batches.getHandle(batchId).cancel({ followUps: true }),
    retry: ({ batchId }) => this.batches.getHandle(batchId).retry(),
    pause: ({ batchId }) => this.batches.getHandle(batchId).pause(),
    resume: ({ batchId }) => this.batches.getHandle(batchId).resume(),
    concurrency: ({ batchId }) => this.batches.getHandle(batchId).setConcurrency(1 + this.below(MOST_OPEN)),
    results: ({ batchId }) => this.batches.getHandle(batchId).settled(),
    terminate: (file) => this.terminate(file),
    resetBatch: async ({ batchId }) => this.reset(await this.batch(batchId)),
    terminatePage: async (file) => (await this.page(file)).terminate(),
    resetPage: async (file) => this.reset(await this.page(file)),
    deletePage: async (file) => this.delete(await this.page(file)),
    terminateItem: async (file) => (await this.item(file)).terminate(),
    resetItem: async (file) => {
      const item = await this.item(file);
      this.resetItems.add(item.workflowId);
      await this.reset(item);
    },
    deleteItem: async (file) => this.delete(await this.item(file)),
    cancelItem: async (file) => (await this.item(file)).cancel(),
    sendByName: (file) => this.sendByName(file, 'the same'),
    sendAnotherByName: (file) => this.sendByName(file, 'another'),
  };

  get batches() {
    return this.client.batches;
  }

  async start(file: SoakFile) {
    return this.batches.start(await this.check(file), { concurrency: 1 + this.below(MOST_OPEN) });
  }

  async terminate({ batchId }: SoakFile): Promise<void> {
    await (await this.batch(batchId)).terminate();
  }

  /** @returns what was done, in words @throws whatever nobody expects */
  async doOne(file: SoakFile): Promise<string> {
    const names = Object.keys(this.all);
    const name = names[this.below(names.length)] ?? '';
    try {
      await this.all[name]?.(file);
      return name;
    } catch (error) {
      const isExpected =
        EXPECTED.some((type) => error instanceof type) ||
        hasCode(error, ...EXPECTED_CODES) ||
        isGrpcServiceError(error) ||
        isTransient(error);
      if (!isExpected) throw new Error(`${name} of ${file.batchId}`, { cause: error });
      return `${name} (refused)`;
    }
  }

  check({ batchId, requests }: SoakFile, items = requests) {
    return this.batches.check(items, { batchId });
  }

  private async batch(batchId: string): Promise<WorkflowHandle> {
    return this.environment.client.workflow.getHandle(
      (await this.batches.getHandle(batchId).describe()).workflowId,
    );
  }

  private async page({ batchId }: SoakFile): Promise<WorkflowHandle> {
    const { run, pages } = await this.batches.getHandle(batchId).describe();
    const number = 1 + this.below(pages?.pages ?? 1);
    return this.environment.client.workflow.getHandle(pageWorkflowId(batchId, run, number));
  }

  private async item(file: SoakFile): Promise<WorkflowHandle> {
    const { items } = await this.check(file);
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error('there are no items');
    const { projectId, jobId } = item.request;
    const id = followUpWorkflowId(projectId, jobId, requestIdOf(file.batchId, item));
    return this.environment.client.workflow.getHandle(id);
  }

  /** Another program that has the same name for a follow-up, and the same message or another one. */
  private async sendByName({ requests }: SoakFile, message: 'the same' | 'another'): Promise<void> {
    const request = requests.filter(({ requestId }) => requestId !== undefined)[this.below(3)];
    if (request === undefined) return;
    const prompt = message === 'the same' ? request.prompt : `not ${request.prompt.slice(0, 40)}`;
    const { projectId, jobId, requestId = '' } = request;
    await this.environment.client.workflow
      .start('followUp', {
        workflowId: followUpWorkflowId(projectId, jobId, requestId),
        taskQueue: this.environment.taskQueue,
        args: [{ ...request, prompt }],
        workflowIdConflictPolicy: 'USE_EXISTING',
        workflowIdReusePolicy: 'REJECT_DUPLICATE',
      })
      .catch((error: unknown) => {
        if (!(error instanceof Error) || error.name !== 'WorkflowExecutionAlreadyStartedError') throw error;
      });
  }

  private async reset({ client, workflowId }: WorkflowHandle): Promise<void> {
    const handle = client.getHandle(workflowId);
    const { runId } = await handle.describe();
    const { events } = await handle.fetchHistory();
    const tasks = (events ?? []).filter((event) => event.workflowTaskCompletedEventAttributes);
    const task = tasks[this.below(tasks.length)];
    if (task === undefined) return;
    await client.workflowService.resetWorkflowExecution({
      namespace: client.options.namespace,
      workflowExecution: { workflowId, runId },
      workflowTaskFinishEventId: task.eventId ?? null,
      requestId: randomUUID(),
      reason: 'the soak',
    });
  }

  private async delete({ client, workflowId }: WorkflowHandle): Promise<void> {
    const { namespace } = client.options;
    await client.workflowService.deleteWorkflowExecution({ namespace, workflowExecution: { workflowId } });
  }

  private below(limit: number): number {
    return Math.floor(this.random() * limit);
  }
}
