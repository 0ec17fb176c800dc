import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { Runtime, type Worker, type WorkerOptions, type WorkerPlugin } from '@temporalio/worker';
import { createActivities, type NotifyOptions, POLL_LIMIT_MS } from '../activities';
import type { AgentApi } from '../agent-api/client';
import { FollowUpError } from '../core/errors';
import { beginCounters } from '../core/metrics';
import { BATCH_WORKFLOW, FOLLOW_UP_WORKFLOW } from '../core/names';
import type { FollowUpActivities } from '../core/activities';
import { ensureSearchAttributes } from '../temporal/search-attributes';
import { showOpenWorkflows } from './open-workflows';

/** The task queues by what runs on them. They may be one and the same. */
export interface TaskQueues {
  /** Workflow tasks. */
  readonly followUp: string;
  /** Activities that read the job, so that reads have limits of their own. */
  readonly read: string;
  /** The activity that sends the message, so that sends have limits of their own. */
  readonly send: string;
}

export interface FollowUpPluginOptions {
  /** See `createAgentApi`. The plugin does not close it. */
  readonly agentApi: AgentApi;
  /** A worker gets what its own task queue is for. @default the task queue of the first worker for everything */
  readonly taskQueues?: TaskQueues;
  /**
   * How many polls may wait in this process at a time. Each holds about 0.14 MiB and a slot of its own, which the plugin
   * adds to the worker's activity slots; a `tuner` must have room for them. With 0 the server keeps every wait. @default 0
   */
  readonly inProcessPolls?: number;
  /**
   * Whether a worker registers the search attributes that are missing, before it polls. Without them every follow-up stalls
   * without a word. @default true
   */
  readonly ensureSearchAttributes?: boolean;
  /** How long one activity polls at most, in milliseconds. @default 30 minutes */
  readonly pollLimitMs?: number;
  /** Where the ends of follow-ups and batches are told (docs/notify.md of the project). @default nowhere */
  readonly notify?: NotifyOptions | undefined;
}

/** Where an activity of the agent service is offered: a queue's limits hold for everything in it. Others ask only Temporal. */
const QUEUES = {
  getJob: 'read',
  pollJob: 'read',
  sendMessage: 'send',
} as const satisfies Partial<Record<keyof FollowUpActivities, keyof TaskQueues>>;

function queueOf(activity: string): keyof TaskQueues {
  return activity in QUEUES ? QUEUES[activity as keyof typeof QUEUES] : 'followUp';
}

/** Bundled by the SDK when the worker is created. */
const WORKFLOWS = path.join(__dirname, '../workflows');
const WORKFLOW_TYPES = [FOLLOW_UP_WORKFLOW, BATCH_WORKFLOW];
/** The SDK's default number of activity slots. */
const DEFAULT_SLOTS = 100;

/** The report of an activity's end may take this long to reach the server. */
const REPORT_MS = 5_000;
/** How much longer than that a shutdown may take before it is forced; by then the server has given the sends up too. */
const FORCE_MARGIN_MS = 15_000;

/**
 * How long one activation of a workflow may run; ours take milliseconds. The SDK's limit of 5 s counts by the clock, so it also
 * cuts off a process that was frozen or starved of CPU in the middle of one, which likely ended a worker in the soak ("async
 * hook stack has become corrupted", Node 20). The SDK takes this option, although its type does not name it.
 */
const WORKFLOW_CODE_LIMIT = { isolateExecutionTimeout: 60_000 };

/** How often the plugin looks whether a worker is shutting down: the SDK has no event for it. */
const STATE_CHECK_MS = 250;

/** How long a shutdown takes at most, in milliseconds: the two exchanges of a send, its report, and a margin. */
export function shutdownLimitMs(httpTimeoutMs: number): number {
  return 2 * httpTimeoutMs + REPORT_MS + FORCE_MARGIN_MS;
}

/**
 * Adds follow-ups to a Temporal worker: their activities and, where the worker has no workflows of its own, their
 * workflows. A worker with workflows of its own exports ours beside them. Data converter, interceptors and every other
 * option stay as they are. One plugin serves all workers of a process.
 *
 * ```ts
 * const agentApi = createAgentApi({ baseUrl, apiKey: await keyFromFile(path), timeoutMs: 30_000 });
 * const plugins = [new FollowUpPlugin({ agentApi })];
 * const worker = await Worker.create({ connection, taskQueue, workflowsPath, activities, plugins });
 * ```
 */
export class FollowUpPlugin implements WorkerPlugin {
  readonly name = 'agent-follow-up';
  private readonly shutdown = new AbortController();
  private offered: { readonly taskQueues: TaskQueues; readonly activities: FollowUpActivities } | undefined;

  constructor(private readonly options: FollowUpPluginOptions) {}

  /** @throws TypeError for a worker whose task queue is not one of `taskQueues` */
  configureWorker(worker: WorkerOptions): WorkerOptions {
    const { agentApi, inProcessPolls = 0 } = this.options;
    const { taskQueue } = worker;
    const { taskQueues, activities } = this.offer(taskQueue);
    const own = Object.entries(activities).filter(([name]) => taskQueues[queueOf(name)] === taskQueue);
    if (own.length === 0) {
      const known = Object.values(taskQueues).join(', ');
      throw new TypeError(`the task queue ${taskQueue} is not one of the follow-up plugin's: ${known}`);
    }
    const runsWorkflows = taskQueue === taskQueues.followUp;
    const hasWorkflows = worker.workflowsPath !== undefined || worker.workflowBundle !== undefined;
    const polls = taskQueue === taskQueues.read && worker.tuner === undefined ? inProcessPolls : 0;
    const slots = (worker.maxConcurrentActivityTaskExecutions ?? DEFAULT_SLOTS) + polls;
    return {
      // Activities are asked to stop only after the grace time: a POST under way has long ended by its own limit.
      shutdownGraceTime: 2 * agentApi.timeoutMs + REPORT_MS,
      shutdownForceTime: shutdownLimitMs(agentApi.timeoutMs),
      ...WORKFLOW_CODE_LIMIT,
      ...worker,
      ...(runsWorkflows && !hasWorkflows ? { workflowsPath: WORKFLOWS } : {}),
      ...(polls === 0 ? {} : { maxConcurrentActivityTaskExecutions: slots }),
      activities: { ...worker.activities, ...Object.fromEntries(own) },
    };
  }

  /**
   * While the worker runs: polls that wait in the process are handed over to the server when it begins to shut down.
   *
   * @throws SearchAttributesError before it polls, where they are missing and can't be registered; the message says what to run
   * @throws FollowUpError before it polls, where its workflows are not exported; the message says how to export them
   */
  async runWorker(worker: Worker, next: (worker: Worker) => Promise<void>): Promise<void> {
    const { taskQueue, namespace } = worker.options;
    const runsWorkflows = taskQueue === this.offered?.taskQueues.followUp;
    this.beginCounters(namespace, taskQueue);
    const mayEnsure = this.options.ensureSearchAttributes ?? true;
    if (mayEnsure && worker.connection !== undefined && runsWorkflows) {
      await ensureSearchAttributes(worker.connection, namespace);
    }
    if (runsWorkflows) await expectWorkflows(worker);
    const check = setInterval(() => {
      const state = worker.getState();
      if (state !== 'INITIALIZED' && state !== 'RUNNING') this.shutdown.abort();
    }, STATE_CHECK_MS);
    const stopShowing = runsWorkflows ? showOpenWorkflows(worker) : () => undefined;
    try {
      await next(worker);
    } finally {
      stopShowing();
      clearInterval(check);
      this.shutdown.abort();
    }
  }

  /** With the labels that the SDK adds to what workflows and activities record. */
  private beginCounters(namespace: string, taskQueue: string): void {
    const { metricMeter } = Runtime.instance();
    const { followUp, ...asking } = this.offer(taskQueue).taskQueues;
    for (const [activityType, queue] of Object.entries(QUEUES)) {
      if (asking[queue] !== taskQueue) continue;
      beginCounters(metricMeter, 'activities', { namespace, taskQueue, activityType });
    }
    if (taskQueue !== followUp) return;
    for (const workflowType of WORKFLOW_TYPES)
      beginCounters(metricMeter, workflowType, { namespace, taskQueue, workflowType });
  }

  /** The activities are made once: all workers of the process share the polls that wait in it. */
  private offer(taskQueue: string): NonNullable<FollowUpPlugin['offered']> {
    if (this.offered !== undefined) return this.offered;
    const { agentApi, notify, inProcessPolls = 0 } = this.options;
    const taskQueues = this.options.taskQueues ?? { followUp: taskQueue, read: taskQueue, send: taskQueue };
    const settings = {
      readTaskQueue: taskQueues.read,
      sendTaskQueue: taskQueues.send,
      httpTimeoutMs: agentApi.timeoutMs,
      pollLimitMs: this.options.pollLimitMs ?? POLL_LIMIT_MS,
    };
    const polls = { maximum: inProcessPolls, shutdown: this.shutdown.signal };
    this.offered = { taskQueues, activities: createActivities(agentApi, settings, polls, notify) };
    return this.offered;
  }
}

/** Of the SDK's worker, which keeps it to itself; whatever the bundle was made of, this is what runs its workflows. */
interface Bundle {
  createWorkflow(options: object): Promise<{ dispose(): Promise<void> }>;
  destroy(): Promise<void>;
}

/** The SDK's error for a type that the bundle does not export; any other may be due to how little is known of this workflow. */
const NOT_EXPORTED = 'Failed to initialize workflow of type';

/**
 * A worker whose bundle lacks our workflows looks well, and every follow-up that it takes fails its task for ever. So a workflow
 * of each type is created as the SDK does it for a first task, and dropped before it runs.
 */
async function expectWorkflows(worker: Worker): Promise<void> {
  const { namespace, taskQueue } = worker.options;
  const { workflowCreator: bundle } = worker as unknown as { readonly workflowCreator: Bundle };
  for (const workflowType of WORKFLOW_TYPES) {
    const ids = { workflowId: workflowType, runId: randomUUID(), namespace, taskQueue };
    const info = { workflowType, ...ids, searchAttributes: {}, unsafe: {} };
    const options = { info, randomnessSeed: [0], now: Date.now(), showStackTraceSources: false };
    try {
      await (await bundle.createWorkflow(options)).dispose();
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith(NOT_EXPORTED))) continue;
      // Its thread would keep the process from ending.
      await bundle.destroy();
      const message =
        `the worker of the task queue ${taskQueue} does not poll, because its workflows lack ${workflowType}; export ours ` +
        "beside its own: export * from 'agent-follow-up-plugin/workflows';";
      throw new FollowUpError('NOT_SET_UP', message, { cause: error });
    }
  }
}

export type { NotifyOptions } from '../activities';
export { FollowUpError } from '../core/errors';
export { SearchAttributesError } from '../temporal/search-attributes';
export { keyFromFile, keyFromText } from '../agent-api/api-key';
export { createAgentApi } from '../agent-api/client';
export { histogramBuckets } from '../core/metrics';
