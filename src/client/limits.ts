import type { Client } from '@temporalio/client';
import { FollowUpError } from '../core/errors';
import { isRecord, typeName } from '../core/checks';
import { idProblem } from '../core/check-request';
import { fairnessKey } from '../core/ids';
import { quote, visible } from '../core/text';
import { formatRate, parseRate, type RateText } from '../core/units';
import { grpcError, hasGrpcStatus } from '../temporal/grpc-status';
import { ACTIVITY_TASKS } from '../temporal/sdk-internals';
import { type CallOptions, type Calls, SERVER_LIMIT_MS, within } from './call';
import { invalid, refuse } from './errors';
import { unknownOptions } from './options';

export interface Limits {
  readonly sends: QueueLimits;
  readonly reads: QueueLimits;
}

export interface QueueLimits {
  readonly taskQueue: string;
  /** All projects together; null for no limit. */
  readonly total: RateText | null;
  /** Each project, times its weight; null for no limit. */
  readonly perProject: RateText | null;
  /** By fairness key: the project id or, for one beyond 64 bytes, `hash-…`. */
  readonly weights: Readonly<Record<string, number>>;
  /** About how many tasks wait for a worker or for a limit. */
  readonly waiting: number;
}

/** What is left out stays as it is; `off` removes it. */
export interface LimitsChange {
  readonly sendsPerProject?: RateText | 'off' | undefined;
  readonly readsPerProject?: RateText | 'off' | undefined;
  readonly sendsTotal?: RateText | 'off' | undefined;
  readonly readsTotal?: RateText | 'off' | undefined;
  /** By project id, 0.001 to 1000: its share where projects compete, and a factor to its own limit. Without one it is 1. */
  readonly projectWeights?: Readonly<Record<string, number | 'off'>> | undefined;
}

/** Every method answers with the limits that hold, and throws FollowUpError `LIMITS_UNAVAILABLE` where the server has none. */
export class LimitsClient {
  readonly #calls: Calls;

  constructor(
    calls: Calls,
    private readonly queues: Readonly<Record<keyof Limits, string>>,
  ) {
    this.#calls = calls;
  }

  get(options: CallOptions = {}): Promise<Limits> {
    return this.#calls.run(options, (client) => this.change(client));
  }

  /**
   * Sets limits for all workers. Those per project and weights need fairness on the server (docs/limits.md).
   *
   * @throws InvalidRequestError with every problem, before anything is changed
   */
  async set(change: LimitsChange, options: CallOptions = {}): Promise<Limits> {
    const checked = checkLimits(change);
    return this.#calls.run(options, (client) => this.change(client, checked));
  }

  /** Removes all limits and weights, whoever has set them. */
  clear(options: CallOptions = {}): Promise<Limits> {
    return this.#calls.run(options, async (client) => {
      const { sends, reads } = await this.change(client);
      const none = ({ weights }: QueueLimits) => queueChange(REMOVED, REMOVED, {}, Object.keys(weights));
      return this.change(client, { sends: none(sends), reads: none(reads) });
    });
  }

  private async change(client: Client, changes?: Changes): Promise<Limits> {
    const limitsOf = async (kind: keyof Limits): Promise<QueueLimits> => {
      const taskQueue = this.queues[kind];
      const change = changes?.[kind];
      const changed = change && !isEmpty(change) ? await updateQueue(client, taskQueue, change) : {};
      // What describes a queue hears of a change a moment later than the one who made it.
      return { ...(await readQueue(client, taskQueue)), ...changed };
    };
    return { sends: await limitsOf('sends'), reads: await limitsOf('reads') };
  }
}

type Service = Client['workflowService'];
type Rate = NonNullable<Parameters<Service['updateTaskQueueConfig']>[0]['updateQueueRateLimit']> | null;

/** Without a rate, the server removes the limit; without an update, it keeps it. */
const REMOVED: Rate = { rateLimit: null };

function queueChange(total: Rate, perProject: Rate, set: Record<string, number>, unset: string[]) {
  return {
    updateQueueRateLimit: total,
    updateFairnessKeyRateLimitDefault: perProject,
    setFairnessWeightOverrides: set,
    unsetFairnessWeightOverrides: unset,
  };
}

type QueueChange = ReturnType<typeof queueChange>;
type Changes = Readonly<Record<keyof Limits, QueueChange>>;

function isEmpty(change: QueueChange): boolean {
  return Object.values(change).every((each) => Object.keys(each ?? {}).length === 0);
}

/** The server raises a smaller weight to this one (source: server 1.31, matching/fairness_util.go). */
const MIN_WEIGHT = 0.001;
/** With a larger one a project would leave the others less than a thousandth. */
const MAX_WEIGHT = 1_000;

const OPTIONS = ['sendsTotal', 'sendsPerProject', 'readsTotal', 'readsPerProject', 'projectWeights'];

/** @throws InvalidRequestError with every problem */
export function checkLimits(change: LimitsChange): Changes {
  const given: unknown = change;
  if (!isRecord(given)) throw invalid('limits', `must be an object, not ${typeName(given)}`);
  const { projectWeights = {}, ...rates } = change;
  const problems = unknownOptions(rates, OPTIONS);
  const rate = (field: keyof typeof rates): Rate => {
    const text = rates[field];
    if (text === undefined) return null;
    if (text === 'off') return REMOVED;
    const parsed = parseRate(text);
    if ('perSecond' in parsed) return { rateLimit: { requestsPerSecond: parsed.perSecond } };
    problems.push({ field, text: parsed.problem });
    return null;
  };
  const set: [string, number][] = [];
  const unset: string[] = [];
  for (const [projectId, weight] of Object.entries(projectWeights)) {
    const text = idProblem(projectId) ?? weightProblem(weight);
    if (text !== undefined) problems.push({ field: visible(`projectWeights.${projectId}`), text });
    if (weight === 'off') unset.push(fairnessKey(projectId));
    else set.push([fairnessKey(projectId), weight]);
  }
  const weights = Object.fromEntries(set);
  const sends = queueChange(rate('sendsTotal'), rate('sendsPerProject'), weights, unset);
  const reads = queueChange(rate('readsTotal'), rate('readsPerProject'), weights, unset);
  if (problems.length === 0 && isEmpty(sends) && isEmpty(reads))
    problems.push({ field: 'limits', text: 'no change given; give at least one limit or project weight' });
  refuse(problems);
  return { sends, reads };
}

function weightProblem(weight: unknown): string | undefined {
  if (weight === 'off' || (typeof weight === 'number' && weight >= MIN_WEIGHT && weight <= MAX_WEIGHT))
    return undefined;
  return `must be a number from ${MIN_WEIGHT} to ${MAX_WEIGHT}, or off; it is ${quote(weight)}`;
}

async function readQueue(client: Client, taskQueue: string): Promise<QueueLimits> {
  const { config, stats, effectiveRateLimit } = await ask(client, `${taskQueue} can't be read`, () =>
    client.workflowService.describeTaskQueue({
      namespace: client.options.namespace,
      taskQueue: { name: taskQueue },
      taskQueueType: ACTIVITY_TASKS,
      reportConfig: true,
      reportStats: true,
    }),
  );
  // An older server leaves out what it does not know of, without a word.
  if (!effectiveRateLimit && !config) throw new FollowUpError('LIMITS_UNAVAILABLE', TOO_OLD);
  return { taskQueue, ...toldBy(config), waiting: Number(stats?.approximateBacklogCount ?? 0) };
}

async function updateQueue(client: Client, taskQueue: string, change: QueueChange) {
  const { namespace, identity } = client.options;
  const queue = { namespace, identity, taskQueue, taskQueueType: ACTIVITY_TASKS };
  const { config } = await ask(client, `${taskQueue} can't be set`, () =>
    client.workflowService.updateTaskQueueConfig({ ...queue, ...change }),
  );
  return toldBy(config);
}

type QueueConfig = Awaited<ReturnType<Service['describeTaskQueue']>>['config'];

function toldBy(config: QueueConfig) {
  const weights = Object.entries(config?.fairnessWeightOverrides ?? {});
  return {
    total: rateOf(config?.queueRateLimit),
    perProject: rateOf(config?.fairnessKeysRateLimitDefault),
    // Floats of 32 bits, without the digits that they only seem to have.
    weights: Object.fromEntries(weights.map(([key, weight]) => [key, Number(weight.toPrecision(6))])),
  };
}

/** Of a limit that was removed, the server keeps some facts, and no rate. */
function rateOf(limit: NonNullable<QueueConfig>['queueRateLimit']): RateText | null {
  const perSecond = limit?.rateLimit?.requestsPerSecond ?? null;
  return perSecond === null ? null : formatRate(perSecond);
}

async function ask<T>(client: Client, failed: string, work: () => Promise<T>): Promise<T> {
  try {
    return await within(client, SERVER_LIMIT_MS, work);
  } catch (error) {
    const isOld = hasGrpcStatus(error, 'UNIMPLEMENTED');
    if (!isOld && !hasGrpcStatus(error, 'PERMISSION_DENIED', 'INVALID_ARGUMENT', 'FAILED_PRECONDITION'))
      throw error;
    const why = `The limits of the task queue ${failed}: ${grpcError(error)?.words ?? ''}.`;
    throw new FollowUpError('LIMITS_UNAVAILABLE', isOld ? TOO_OLD : why, { cause: error });
  }
}

const TOO_OLD =
  'This Temporal server has no limits of task queues: it lacks the operation UpdateTaskQueueConfig. Update the server.';
