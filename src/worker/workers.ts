import { getHeapStatistics } from 'node:v8';
import { type NativeConnection, Runtime, Worker, type WorkerOptions } from '@temporalio/worker';
import type { WorkerConfig } from './config';
import type { FollowUpPlugin, TaskQueues } from './plugin';

/** If the agent service does not respond, so many connections wait. A poll that waits for its interval takes no slot. */
const CONCURRENT_READS = 200;

/** Each holds its prompt (up to 256 KiB) several times over; the service takes 100 an hour and project. */
const CONCURRENT_SENDS = 50;

/** Questions to the Temporal server: each takes milliseconds, and waits as a retry, without a slot. */
const CONCURRENT_SERVER_CALLS = 50;

/** The SDK's default. They share one thread: more would wait there. */
const CONCURRENT_WORKFLOW_TASKS = 40;

/** How much the process grows with each cached workflow, as `npm run bench:in-flight` measures with thousands in flight. */
const CACHED_WORKFLOW_MB = 0.48;
const BASE_MB = 256;

/** Within the SDK's defaults: 1 to 100, 5 at first. */
const POLLERS = { type: 'autoscaling' } as const;

interface WorkersConfig extends Partial<Pick<WorkerConfig, 'dataConverter' | 'deploymentVersion'>> {
  readonly temporal: Pick<WorkerConfig['temporal'], 'namespace'>;
  readonly taskQueues: TaskQueues;
}

/** A follow-up that waits for weeks needs no worker of an old version. */
const VERSIONING = { useWorkerVersioning: true, defaultVersioningBehavior: 'AUTO_UPGRADE' } as const;

export class FollowUpWorkers {
  private constructor(
    private readonly workers: readonly Worker[],
    private readonly plugin: FollowUpPlugin,
  ) {}

  static async create(
    connection: NativeConnection,
    { temporal, taskQueues, dataConverter, deploymentVersion }: WorkersConfig,
    code: Pick<WorkerOptions, 'workflowBundle'>,
    plugin: FollowUpPlugin,
  ): Promise<FollowUpWorkers> {
    const shared = {
      connection,
      namespace: temporal.namespace,
      plugins: [plugin],
      ...(dataConverter && { dataConverter }),
      ...(deploymentVersion && { workerDeploymentOptions: { version: deploymentVersion, ...VERSIONING } }),
      workflowTaskPollerBehavior: POLLERS,
      activityTaskPollerBehavior: POLLERS,
    };
    const freeMb = availableMb() - BASE_MB;
    const workflows = {
      ...code,
      maxConcurrentWorkflowTaskExecutions: CONCURRENT_WORKFLOW_TASKS,
      // An evicted workflow isn't lost: its next task replays its history.
      maxCachedWorkflows: Math.max(100, Math.floor(freeMb / CACHED_WORKFLOW_MB)),
    };
    const create = (taskQueue: string, activities: number, options: Partial<WorkerOptions> = {}) =>
      Worker.create({ ...shared, ...options, taskQueue, maxConcurrentActivityTaskExecutions: activities });
    const workers = [
      await create(taskQueues.followUp, CONCURRENT_SERVER_CALLS, workflows),
      await create(taskQueues.read, CONCURRENT_READS),
      await create(taskQueues.send, CONCURRENT_SENDS),
    ];
    return new FollowUpWorkers(workers, plugin);
  }

  /** Runs all until `stop` is aborted or one ends, then lets them finish what they have begun. @throws the error of one that failed */
  async run(stop: AbortSignal, onReady: () => void = () => undefined): Promise<void> {
    const oneEnded = new AbortController();
    const stopSignal = AbortSignal.any([stop, oneEnded.signal]);
    let running = 0;
    this.plugin.onRunning = (worker) => {
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
        const failed = `the worker of task queue ${worker.options.taskQueue} failed; the others are drained`;
        Runtime.instance().logger.error(failed, { error });
        throw error;
      } finally {
        oneEnded.abort();
      }
    });
    const results = await Promise.allSettled(runs);
    for (const end of results) if (end.status === 'rejected') throw end.reason;
  }

  /** The task queues that nobody polls, in words. */
  notRunningReasons(): string[] {
    return this.workers
      .filter((worker) => worker.getState() !== 'RUNNING')
      .map((worker) => `the worker of task queue ${worker.options.taskQueue} is ${worker.getState()}`);
  }
}

function availableMb(): number {
  const heapMb = getHeapStatistics().heap_size_limit / 1_048_576;
  // Of a container, in bytes; 0 or absurdly large if there is no limit.
  const limitMb = process.constrainedMemory() / 1_048_576;
  return limitMb > 0 ? Math.min(heapMb, limitMb) : heapMb;
}
