import { getHeapStatistics } from 'node:v8';
import { type NativeConnection, Runtime, Worker, type WorkerOptions } from '@temporalio/worker';
import { checkCodec } from '../temporal/connection-config';
import { WorkflowCodePlugin } from './bundle';
import type { WorkerConfig } from './config';
import type { FollowUpPlugin, TaskQueues } from './plugin';

/** The maximum number of concurrent reads. A poll that waits for its next interval takes no slot. */
const CONCURRENT_READS = 200;

/**
 * The maximum number of concurrent sends. Each send holds several copies of its prompt (up to 256 KiB) in memory. More slots
 * are not needed, because an agent service accepts few messages (for example 100 per project and hour).
 */
const CONCURRENT_SENDS = 50;

/**
 * The maximum number of concurrent activities on the workflow task queue: requests to the Temporal server, rounds of batches
 * (up to a minute or more while items start), and notifications. An activity that waits for its next attempt takes no slot.
 */
const CONCURRENT_OTHER_ACTIVITIES = 50;

/** The SDK's default. All workflow tasks share one thread, so further tasks would only wait for the thread. */
const CONCURRENT_WORKFLOW_TASKS = 40;

/** The memory of one cached workflow in MiB, as `npm run bench:in-flight` measures it with thousands of follow-ups. */
const CACHED_WORKFLOW_MIB = 0.48;
/** The memory in MiB that is left for everything except cached workflows. */
const BASE_MIB = 256;

/** The SDK adapts the number of pollers. Its defaults are 5 pollers at the start, and 1 to 100 later. */
const POLLERS = { type: 'autoscaling' } as const;

interface WorkersConfig extends Partial<Pick<WorkerConfig, 'plugins' | 'deploymentVersion'>> {
  readonly temporal: Pick<WorkerConfig['temporal'], 'namespace'> & Partial<WorkerConfig['temporal']>;
  readonly taskQueues: TaskQueues;
}

/** Running follow-ups move to the current version, so that a follow-up that waits for weeks needs no worker of an old version. */
const VERSIONING = { useWorkerVersioning: true, defaultVersioningBehavior: 'AUTO_UPGRADE' } as const;

export class FollowUpWorkers {
  private constructor(
    private readonly workers: readonly Worker[],
    private readonly lastPlugin: WorkflowCodePlugin,
  ) {}

  /** @param bundlePath the file of the prebuilt bundle; if undefined, the workflows are bundled at start */
  static async create(
    connection: NativeConnection,
    { temporal, taskQueues, plugins = [], deploymentVersion }: WorkersConfig,
    bundlePath: string | undefined,
    plugin: FollowUpPlugin,
  ): Promise<FollowUpWorkers> {
    // `WorkflowCodePlugin` calls `configureBundler` in this order. The follow-up plugin comes last, because it adds its workflows to
    // the `workflowsPath` that the other plugins have set.
    const workflowCode = new WorkflowCodePlugin(taskQueues.followUp, [...plugins, plugin], bundlePath);
    const shared = {
      connection,
      namespace: temporal.namespace,
      // The SDK calls `configureWorker` in this order. `WorkflowCodePlugin` comes last, because it needs the final options.
      plugins: [plugin, ...plugins, workflowCode],
      ...(deploymentVersion && { workerDeploymentOptions: { version: deploymentVersion, ...VERSIONING } }),
      workflowTaskPollerBehavior: POLLERS,
      activityTaskPollerBehavior: POLLERS,
    };
    const freeMib = availableMib() - BASE_MIB;
    const workflows = {
      maxConcurrentWorkflowTaskExecutions: CONCURRENT_WORKFLOW_TASKS,
      // An evicted workflow is not lost, because its next task replays its history.
      maxCachedWorkflows: Math.max(100, Math.floor(freeMib / CACHED_WORKFLOW_MIB)),
    };
    const create = (taskQueue: string, activities: number, options: Partial<WorkerOptions> = {}) =>
      Worker.create({ ...shared, ...options, taskQueue, maxConcurrentActivityTaskExecutions: activities });
    const workers = [
      await create(taskQueues.followUp, CONCURRENT_OTHER_ACTIVITIES, workflows),
      await create(taskQueues.read, CONCURRENT_READS),
      await create(taskQueues.send, CONCURRENT_SENDS),
    ];
    for (const { options } of workers) checkCodec(temporal, options.loadedDataConverter);
    return new FollowUpWorkers(workers, workflowCode);
  }

  /**
   * Runs all workers until `stop` is aborted or one of them ends. Then the workers finish their running tasks.
   *
   * @throws the error of the first worker in the list that failed
   */
  async run(stop: AbortSignal, onReady: () => void = () => undefined): Promise<void> {
    const oneEnded = new AbortController();
    const stopSignal = AbortSignal.any([stop, oneEnded.signal]);
    let running = 0;
    this.lastPlugin.onRunning = (worker) => {
      const end = () => {
        if (worker.getState() === 'RUNNING') worker.shutdown();
      };
      stopSignal.addEventListener('abort', end);
      running += 1;
      if (stopSignal.aborted) end();
      else if (running === this.workers.length) onReady();
    };
    const runs = this.workers.map(async (worker) => {
      try {
        await worker.run();
      } catch (error) {
        const failed = `the worker of task queue ${worker.options.taskQueue} failed; the other workers finish their running tasks and end`;
        Runtime.instance().logger.error(failed, { error });
        throw error;
      } finally {
        oneEnded.abort();
      }
    });
    const results = await Promise.allSettled(runs);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  /** Returns a text for each task queue whose worker is not running. */
  notRunningReasons(): string[] {
    return this.workers
      .filter((worker) => worker.getState() !== 'RUNNING')
      .map((worker) => `the worker of task queue ${worker.options.taskQueue} is ${worker.getState()}`);
  }
}

function availableMib(): number {
  const heapMib = getHeapStatistics().heap_size_limit / 1_048_576;
  // The memory limit of a container in bytes. Without a limit, the value is 0 or extremely large.
  const limitMib = process.constrainedMemory() / 1_048_576;
  return limitMib > 0 ? Math.min(heapMib, limitMib) : heapMib;
}
