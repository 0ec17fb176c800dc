import { readFileSync } from 'node:fs';
import {
  type BundleOptions,
  type BundlerPlugin,
  Runtime,
  type Worker,
  type WorkerOptions,
  type WorkerPlugin,
} from '@temporalio/worker';
import { createActivities } from '../activities';
import { checkNotifyOptions, type NotifyOptions } from '../activities/post-notification';
import { type AgentApi, checkTimeoutMs } from '../agent-api/client';
import { FollowUpError } from '../contract/follow-up-error';
import { initializeCounters } from '../contract/metrics';
import { BATCH_WORKFLOW, FOLLOW_UP_WORKFLOW } from '../contract/names';
import type { FollowUpActivities } from '../contract/activities';
import { ACTIVATION_TIMEOUT, checkActivationTimeout } from '../temporal/sdk-internals';
import { prepareSearchAttributes } from '../temporal/search-attributes';
import { checkServerVersion, OLDEST_SERVER_VERSION } from '../temporal/server-version';
import { startOpenWorkflowGauges } from './open-workflows';

/** The task queues of the workflows, the reads and the sends. If two of them have the same name, they share one rate limit. */
export interface TaskQueues {
  readonly followUp: string;
  readonly read: string;
  readonly send: string;
}

export interface FollowUpPluginOptions {
  /** The client of the agent service (see `createAgentApi`). The plugin does not close the client. */
  readonly agentApi: AgentApi;
  /** Each worker gets the workflows and activities of its task queue. @default the first worker's task queue for all three */
  readonly taskQueues?: TaskQueues;
  /** The receiver of notifications (docs/notifications.md). @default no notifications */
  readonly notify?: NotifyOptions | undefined;
}

/**
 * The activities that call the agent service. Their task queues are separate, because a rate limit of Temporal applies to a task
 * queue and not to an activity type. No other activity calls the agent service.
 */
const QUEUE_BY_ACTIVITY = new Map<string, keyof TaskQueues>([
  ['getJob', 'read'],
  ['pollJob', 'read'],
  ['sendMessage', 'send'],
] satisfies [keyof FollowUpActivities, keyof TaskQueues][]);

const WORKFLOWS = require.resolve('../workflows');
/** The entry of the bundle if the program that uses the plugin (a team's worker) also has its own workflows. */
const WITH_TEAM_WORKFLOWS = require.resolve('../workflows/with-team-workflows');
const TEAM_WORKFLOWS = 'agent-follow-up-team-workflows';
/** The name of an export of `src/workflows/index.ts`. A bundle with this name contains the workflows. */
const BUNDLE_MARK = 'agentFollowUpWorkflows';

/** The workflow types that record counters. */
const COUNTING_TYPES = [FOLLOW_UP_WORKFLOW, BATCH_WORKFLOW];

const VERSION_UNKNOWN =
  'could not read the version of the Temporal server; the worker starts without a check of the version, which must be ' +
  `${OLDEST_SERVER_VERSION} or newer`;

/** The part of the grace time in which a worker reports the results of its activities. */
const REPORT_TIMEOUT_MS = 5_000;
/**
 * The time between the end of the grace time and the forced end. At the forced end, every send has also exceeded its timeout on
 * the Temporal server.
 */
const FORCE_MARGIN_MS = 15_000;

type WebpackConfig = Parameters<NonNullable<BundleOptions['webpackConfigHook']>>[0];

/** Returns the longest duration of a shutdown, in milliseconds. @param httpTimeoutMs the timeout of one HTTP request */
export function shutdownLimitMs(httpTimeoutMs: number): number {
  return 2 * httpTimeoutMs + REPORT_TIMEOUT_MS + FORCE_MARGIN_MS;
}

/**
 * Adds the activities and workflows of follow-ups to a Temporal worker (docs/plugin.md). Options that the worker sets are not
 * changed. One plugin serves all workers of a process.
 */
export class FollowUpPlugin implements WorkerPlugin, BundlerPlugin {
  readonly name = 'agent_follow_up.FollowUpPlugin';
  private registration:
    { readonly taskQueues: TaskQueues; readonly activities: FollowUpActivities } | undefined;

  /** @throws TypeError, RangeError if the client of the agent service has no valid timeout */
  constructor(private readonly options: FollowUpPluginOptions) {
    checkTimeoutMs('agentApi.timeoutMs', (options.agentApi as AgentApi | undefined)?.timeoutMs);
  }

  /**
   * Adds the workflows of follow-ups to the workflows of the program that uses the plugin. The SDK calls this method when it
   * bundles a `workflowsPath`.
   */
  configureBundler(options: BundleOptions): BundleOptions {
    const { workflowsPath, webpackConfigHook } = options;
    if (workflowsPath === WORKFLOWS) return options;
    const withName = (config: WebpackConfig): WebpackConfig => {
      const { alias = {} } = config.resolve ?? {};
      const aliases = Array.isArray(alias)
        ? [...alias, { name: TEAM_WORKFLOWS, alias: workflowsPath, onlyModule: true }]
        : { ...alias, [`${TEAM_WORKFLOWS}$`]: workflowsPath };
      return { ...config, resolve: { ...config.resolve, alias: aliases } };
    };
    return {
      ...options,
      workflowsPath: WITH_TEAM_WORKFLOWS,
      webpackConfigHook: (config) => withName(webpackConfigHook?.(config) ?? config),
    };
  }

  /**
   * Adds the workflows and activities of the worker's task queue. The SDK calls this method before it creates the worker.
   *
   * @throws TypeError if the worker's task queue is not one of `taskQueues`, if the worker has an activity of the same name, or if
   *   the worker has workflows and the plugin uses its task queue only for activities
   * @throws FollowUpError if the worker has a prebuilt bundle without the workflows
   */
  configureWorker(worker: WorkerOptions): WorkerOptions {
    const { agentApi } = this.options;
    const { taskQueue } = worker;
    const { taskQueues, activities } = this.getRegistration(taskQueue);
    const pluginActivities = Object.entries(activities).filter(
      ([name]) => taskQueues[QUEUE_BY_ACTIVITY.get(name) ?? 'followUp'] === taskQueue,
    );
    if (pluginActivities.length === 0) {
      const queues = Object.values(taskQueues).join(', ');
      throw new TypeError(
        `the task queue ${taskQueue} is not one of the follow-up plugin's task queues: ${queues}`,
      );
    }
    const duplicateNames = Object.keys(worker.activities ?? {}).filter((name) =>
      pluginActivities.some(([each]) => each === name),
    );
    if (duplicateNames.length > 0)
      throw new TypeError(
        `rename these activities, because the follow-up plugin has the same names: ${duplicateNames.join(', ')}`,
      );
    const runsWorkflows = taskQueue === taskQueues.followUp;
    const { workflowsPath, workflowBundle } = worker;
    if (runsWorkflows && workflowBundle !== undefined) checkBundle(workflowBundle, taskQueue);
    const hasWorkflows = workflowsPath !== undefined || workflowBundle !== undefined;
    if (hasWorkflows && !runsWorkflows) throw workflowsOnOtherQueueError(taskQueue, taskQueues.followUp);
    return {
      // The SDK cancels running activities only after the grace time.
      shutdownGraceTime: 2 * agentApi.timeoutMs + REPORT_TIMEOUT_MS,
      shutdownForceTime: shutdownLimitMs(agentApi.timeoutMs),
      ...ACTIVATION_TIMEOUT,
      ...worker,
      ...(runsWorkflows && !hasWorkflows && { workflowsPath: WORKFLOWS }),
      activities: { ...worker.activities, ...Object.fromEntries(pluginActivities) },
    };
  }

  /**
   * Runs the worker, and records metrics while it runs. The SDK calls this method.
   *
   * @throws SearchAttributesError before the worker polls, if search attributes are missing and can't be registered
   * @throws FollowUpError `UNSUPPORTED_SERVER` before the worker polls, if the Temporal server is too old
   * @throws TypeError, SecretError before the worker polls, if `notify` is invalid
   */
  async runWorker(worker: Worker, next: (worker: Worker) => Promise<void>): Promise<void> {
    const { taskQueue, namespace } = worker.options;
    const { taskQueues } = this.getRegistration(taskQueue);
    checkActivationTimeout(worker.options);
    // In activities and workflows, the SDK adds these labels.
    const initialize = (by: string, labels: Readonly<Record<string, string>>) => {
      initializeCounters(Runtime.instance().metricMeter, by, { namespace, taskQueue, ...labels });
    };
    for (const [activityType, queue] of QUEUE_BY_ACTIVITY)
      if (taskQueues[queue] === taskQueue) initialize('activities', { activityType });
    const runsWorkflows = taskQueue === taskQueues.followUp;
    const ending = new AbortController();
    if (runsWorkflows) {
      for (const workflowType of COUNTING_TYPES) initialize(workflowType, { workflowType });
      if (this.options.notify !== undefined) await checkNotifyOptions(this.options.notify);
      if (worker.connection !== undefined) {
        const { logger } = Runtime.instance();
        if ((await checkServerVersion(worker.connection)) === null) logger.warn(VERSION_UNKNOWN);
        await prepareSearchAttributes(worker.connection, namespace, logger, ending.signal);
      }
    }
    if (runsWorkflows) startOpenWorkflowGauges(worker, ending.signal);
    try {
      await next(worker);
    } finally {
      ending.abort();
    }
  }

  /** Creates the activities once for all workers of the process. */
  private getRegistration(taskQueue: string): NonNullable<FollowUpPlugin['registration']> {
    if (this.registration !== undefined) return this.registration;
    const { agentApi, notify } = this.options;
    const taskQueues = this.options.taskQueues ?? { followUp: taskQueue, read: taskQueue, send: taskQueue };
    const settings = {
      readTaskQueue: taskQueues.read,
      sendTaskQueue: taskQueues.send,
      httpTimeoutMs: agentApi.timeoutMs,
    };
    this.registration = { taskQueues, activities: createActivities(agentApi, settings, notify) };
    return this.registration;
  }
}

/**
 * Creates the error for a worker that has workflows on a task queue without follow-ups. By default, `startFollowUp` in such a
 * workflow would use this task queue, and the follow-ups would never run.
 */
function workflowsOnOtherQueueError(taskQueue: string, followUpQueue: string): TypeError {
  return new TypeError(
    `the worker of the task queue ${taskQueue} has workflows, but the follow-up plugin uses this queue only for activities; run the ` +
      `workflows on the task queue ${followUpQueue}, or in a worker without the plugin`,
  );
}

/**
 * Checks that a prebuilt bundle has the workflows of follow-ups. Otherwise, every follow-up would fail its workflow tasks
 * indefinitely.
 *
 * @throws FollowUpError
 */
function checkBundle(bundle: NonNullable<WorkerOptions['workflowBundle']>, taskQueue: string): void {
  const code = 'code' in bundle ? bundle.code : readFileSync(bundle.codePath, 'utf8');
  if (code.includes(BUNDLE_MARK)) return;
  const message =
    `the workflow bundle of the task queue ${taskQueue} does not have the follow-up workflows; add this line to your workflows ` +
    "file and bundle it again: export * from 'agent-follow-up-plugin/workflows';";
  throw new FollowUpError('INVALID_CONFIGURATION', message);
}
