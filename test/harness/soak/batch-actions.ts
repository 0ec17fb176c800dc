import { isGrpcServiceError, type WorkflowHandle, WorkflowNotFoundError } from '@temporalio/client';
import { ConflictError, hasCode, NoAnswerError, NotFoundError } from '../../../src/client';
import { followUpWorkflowId } from '../../../src/core/ids';
import type { FollowUpRequest } from '../../../src/core/request';
import { isTransient } from '../../../src/temporal/grpc-status';
import { BatchOfTest, deleteWorkflow, LARGE, REJECTED_ONCE } from '../batch-of-test';
import type { FollowUpCaller } from '../following';
import { resetToTask, workflowTasks } from '../reset';

/** The starter dies in the hand-over. */
class StarterDied extends Error {}

/** What the people of the soak may hear, beside the words of a server that is away; anything else is a bug. */
const EXPECTED = [ConflictError, NotFoundError, NoAnswerError, StarterDied, WorkflowNotFoundError];
const EXPECTED_CODES = [
  'ALREADY_ENDED',
  'STILL_RUNNING',
  'BATCH_FORGOTTEN',
  'UPDATE_REFUSED',
  'UNREACHABLE',
  'NOT_CONFIRMED',
] as const;

/** Concurrency of the batches, at most. */
export const MOST_OPEN = 6;

const ITEMS = 10;

const TIMES: Partial<FollowUpRequest> = {
  deadline: '30s',
  polling: { initial: '300ms', growth: 0.2, maximum: '1s', jitter: 0.2 },
  reconcile: '2s',
  settle: '500ms',
  confirm: '1s',
};

/**
 * A batch of the soak, in some parts. Each item has a prompt of its own, and all but every fifth one, which follows the item
 * before it, a job of its own; every third one has a name of its own, which others may give as well.
 */
export function soakBatch(caller: FollowUpCaller, batchId: string, random: () => number): BatchOfTest {
  const batch = new BatchOfTest(caller, batchId);
  const once = { operation: 'message', times: 1 } as const;
  let key = { projectId: '', jobId: '' };
  for (let item = 0; item < ITEMS; item += 1) {
    const turn = { durationMs: Math.round(200 + 2_500 * random()) };
    if (item % 5 !== 4) key = caller.addJob({ projectId: `project-${item % 3}`, turn });
    const chance = random();
    if (chance < 0.15) caller.sandbox.setFault({ ...REJECTED_ONCE, ...key });
    else if (chance < 0.25) caller.sandbox.setFault({ name: 'processed-then-reset', ...once, ...key });
    else if (chance < 0.35) caller.sandbox.setFault({ name: 'http-429', ...once, ...key });
    batch.again(key, {
      ...TIMES,
      prompt: `${batchId} item ${item}. ${item % 2 === 0 ? LARGE.slice(0, 240 * 1_024) : ''}`,
      ...(item % 3 === 0 ? { requestId: `${batchId}-name-${item}` } : {}),
    });
  }
  return batch;
}

/** What people, operators and other programs do to a batch. */
export class BatchActions {
  /** Follow-ups that somebody has reset: they run again, and no batch knows of it. */
  readonly resetItems = new Set<string>();
  /** What was done to which workflow, for whoever looks for the cause of a lie. */
  readonly deeds: string[] = [];

  private readonly deletedItems = new Set<string>();
  private readonly sentByName = new Set<string>();
  private readonly resetBatches = new Set<string>();

  constructor(private readonly random: () => number) {}

  /** Deletion takes the protection away: of what another program has started too, and where somebody resets the batch. */
  get unprotected(): ReadonlySet<string> {
    const isOf = (batchId: string, workflowId: string) => workflowId.includes(`:${batchId}-`);
    const unprotected = [...this.deletedItems].filter(
      (id) => this.sentByName.has(id) || [...this.resetBatches].some((batchId) => isOf(batchId, id)),
    );
    return new Set(unprotected);
  }

  /** By name, each as often as it is to be done. */
  private readonly all: Readonly<Record<string, (batch: BatchOfTest) => Promise<unknown>>> = {
    start: (batch) => this.start(batch),
    startAgain: (batch) => this.start(batch),
    // What a second run follows, and what is typed next.
    cancelAndStart: async (batch) => {
      await batch.handle.cancel();
      await this.start(batch);
    },
    cancelAndRetry: async (batch) => {
      await batch.cancel();
      await batch.handle.retry();
    },
    terminateAndStart: async (batch) => {
      await batch.terminate();
      await this.start(batch);
    },
    cancelRunningAndStart: async (batch) => {
      await batch.handle.cancel({ followUps: true });
      await this.start(batch);
    },
    retryAgain: ({ handle }) => handle.retry(),
    startEdited: async ({ batches, batchId, requests }) => batches.start(requests.slice(1), { batchId }),
    dieInTheHandOver: (batch) => {
      const dies = new AbortController();
      setTimeout(() => {
        dies.abort(new StarterDied());
      }, this.below(30));
      return batch.start({ signal: dies.signal });
    },
    cancel: ({ handle }) => handle.cancel(),
    cancelRunning: ({ handle }) => handle.cancel({ followUps: true }),
    retry: ({ handle }) => handle.retry(),
    pause: ({ handle }) => handle.pause(),
    resume: ({ handle }) => handle.resume(),
    concurrency: ({ handle }) => handle.setConcurrency(1 + this.below(MOST_OPEN)),
    results: ({ handle }) => handle.settled(),
    terminate: (batch) => batch.terminate(),
    resetBatch: ({ batchId, workflow }) => {
      this.resetBatches.add(batchId);
      return this.reset(workflow);
    },
    terminateItem: async (batch) => (await this.item(batch)).terminate(),
    resetItem: async (batch) => {
      const item = await this.item(batch);
      this.resetItems.add(item.workflowId);
      await this.reset(item);
    },
    deleteItem: async (batch) => {
      const item = await this.item(batch);
      await deleteWorkflow(item);
      this.deletedItems.add(item.workflowId);
    },
    cancelItem: async (batch) => (await this.item(batch)).cancel(),
    sendByName: (batch) => this.sendByName(batch, 'the same'),
    sendAnotherByName: (batch) => this.sendByName(batch, 'another'),
  };

  async start(batch: BatchOfTest) {
    return batch.start({ concurrency: 1 + this.below(MOST_OPEN) });
  }

  /** @returns what was done, in words @throws whatever nobody expects */
  async doOne(batch: BatchOfTest): Promise<string> {
    const names = Object.keys(this.all);
    const name = names[this.below(names.length)] ?? '';
    this.note(`${name} of ${batch.batchId}`);
    try {
      await this.all[name]?.(batch);
      return name;
    } catch (thrown) {
      // What the client does not know itself, as what a caller's own function throws, is the cause of its error.
      const error = hasCode(thrown, 'UNEXPECTED_FAILURE') ? thrown.cause : thrown;
      const isExpected =
        EXPECTED.some((type) => error instanceof type) ||
        hasCode(error, ...EXPECTED_CODES) ||
        isGrpcServiceError(error) ||
        isTransient(error);
      if (!isExpected) throw new Error(`${name} of ${batch.batchId}`, { cause: thrown });
      return `${name} (refused)`;
    }
  }

  private async item(batch: BatchOfTest): Promise<WorkflowHandle> {
    return this.noted(await batch.itemHandle(this.below(ITEMS)));
  }

  private noted(handle: WorkflowHandle): WorkflowHandle {
    this.note(handle.workflowId);
    return handle;
  }

  private note(deed: string): void {
    this.deeds.push(`${new Date().toISOString()} ${deed}`);
  }

  /** Another program that has the same name for a follow-up, and the same message or another one. */
  private async sendByName(
    { environment, requests }: BatchOfTest,
    message: 'the same' | 'another',
  ): Promise<void> {
    const request = requests.filter(({ requestId }) => requestId !== undefined)[this.below(3)];
    if (request === undefined) return;
    const prompt = message === 'the same' ? request.prompt : `not ${request.prompt.slice(0, 40)}`;
    const { projectId, jobId, requestId = '' } = request;
    const workflowId = followUpWorkflowId(projectId, jobId, requestId);
    if (message === 'the same') this.sentByName.add(workflowId);
    await environment.start(workflowId, { ...request, prompt }).catch((error: unknown) => {
      if (!(error instanceof Error) || error.name !== 'WorkflowExecutionAlreadyStartedError') throw error;
    });
  }

  private async reset(handle: WorkflowHandle): Promise<void> {
    const tasks = await workflowTasks(handle);
    const task = tasks[this.below(tasks.length)];
    if (task !== undefined) await resetToTask(handle, task);
  }

  private below(limit: number): number {
    return Math.floor(this.random() * limit);
  }
}
