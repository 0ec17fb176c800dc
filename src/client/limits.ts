import type { Client } from '@temporalio/client';
import { FollowUpError } from '../core/errors';
import { isRecord, type Problem, typeName } from '../core/checks';
import { idProblem } from '../core/check-request';
import { fairnessKey } from '../core/ids';
import { quote, visible } from '../core/text';
import { formatRate, parseRate, type RateText } from '../core/units';
import { grpcError, hasGrpcStatus } from '../temporal/grpc-status';
import { ACTIVITY_TASKS, optionalTsToMs } from '../temporal/sdk-internals';
import { type CallOptions, type Calls, within } from './call';
import { InvalidRequestError } from './errors';
import { unknownOptions } from './options';

/** The limits of the two kinds of requests to the agent service; each kind has a task queue of its own. */
export interface Limits {
  readonly sends: QueueLimits;
  readonly reads: QueueLimits;
}

export interface QueueLimits {
  readonly taskQueue: string;
  /** All projects together; null for no limit. */
  readonly total: Limit | null;
  /** Each project, times its weight; null for no limit. */
  readonly perProject: Limit | null;
  /** By fairness key, which is the project id or, for one beyond 64 bytes, `hash-…` (`fairnessKey` in src/core/ids.ts). */
  readonly weights: Readonly<Record<string, number>>;
  /** About how many tasks wait for a worker or for a limit. */
  readonly waiting: number;
  /** For how long the oldest of them waits, in milliseconds. */
  readonly oldestMs: number;
}

export interface Limit {
  readonly rate: RateText;
  readonly perSecond: number;
}

/** What is to hold from now on, across all workers. What is left out stays as it is; `off` removes it. */
export interface LimitsChange {
  readonly sendsPerProject?: RateText | 'off' | undefined;
  readonly readsPerProject?: RateText | 'off' | undefined;
  readonly sendsTotal?: RateText | 'off' | undefined;
  readonly readsTotal?: RateText | 'off' | undefined;
  /**
   * By project id, how much more than another one a project gets, 0.001 to 1000: its share where projects compete, and a
   * factor to its own limit. Without one a project's weight is 1.
   */
  readonly projectWeights?: Readonly<Record<string, number | 'off'>> | undefined;
}

type LimitedQueues = Readonly<Record<keyof Limits, string>>;

/**
 * The limits of sends and reads. The Temporal server keeps them. Reached as `FollowUpClient.limits`. Every method throws
 * FollowUpError `LIMITS_UNAVAILABLE` where the server does not tell or take the limits of a queue.
 */
export class LimitsClient {
  readonly #calls: Calls;

  constructor(
    calls: Calls,
    private readonly queues: LimitedQueues,
  ) {
    this.#calls = calls;
  }

  /** The limits that hold, and about how many tasks wait. */
  get(options: CallOptions = {}): Promise<Limits> {
    return this.#calls.run(options, (client) => readLimits(client, this.queues));
  }

  /**
   * Sets limits that hold for all workers within a second or so; what is left out stays as it is. Limits per project and
   * weights need fairness on the server, which does not tell whether it is on (docs/limits.md). Sends are changed before
   * reads.
   *
   * @returns the limits that hold now
   * @throws InvalidRequestError with every problem, before anything is changed
   */
  async set(change: LimitsChange, options: CallOptions = {}): Promise<Limits> {
    const checked = checkLimits(change);
    return this.#calls.run(options, (client) => updateLimits(client, this.queues, checked));
  }

  /** Removes every limit and every weight of both queues, whoever has set them. */
  clear(options: CallOptions = {}): Promise<Limits> {
    return this.#calls.run(options, async (client) => {
      const { sends, reads } = await readLimits(client, this.queues);
      const nothing = ({ weights }: QueueLimits): QueueChange => ({
        total: null,
        perProject: null,
        weights: new Map(Object.keys(weights).map((key) => [key, null])),
      });
      return updateLimits(client, this.queues, { sends: nothing(sends), reads: nothing(reads) });
    });
  }
}

/** Null removes, undefined leaves as it is. */
interface QueueChange {
  readonly total: number | null | undefined;
  readonly perProject: number | null | undefined;
  readonly weights: ReadonlyMap<string, number | null>;
}

type Changes = Readonly<Record<keyof Limits, QueueChange>>;

/** The server raises a smaller weight to this one (source: server 1.31, matching/fairness_util.go). */
const MIN_WEIGHT = 0.001;
/** With a larger one a project would leave the others less than a thousandth; limits are there for that. */
const MAX_WEIGHT = 1_000;

const OPTIONS = ['sendsTotal', 'sendsPerProject', 'readsTotal', 'readsPerProject', 'projectWeights'];

/** @throws InvalidRequestError with every problem, before anything is changed */
export function checkLimits(change: LimitsChange): Changes {
  const given: unknown = change;
  if (!isRecord(given))
    throw new InvalidRequestError([{ field: 'limits', text: `must be an object, not ${typeName(given)}` }]);
  const problems = unknownOptions(change, OPTIONS);
  const rate = (field: Exclude<keyof LimitsChange, 'projectWeights'>): number | null | undefined => {
    const given = change[field];
    if (given === undefined || given === 'off') return given === 'off' ? null : undefined;
    const parsed = parseRate(given);
    if ('perSecond' in parsed) return parsed.perSecond;
    problems.push({ field, text: parsed.problem });
    return undefined;
  };
  const weights = checkWeights(change.projectWeights ?? {}, problems);
  const sends = { total: rate('sendsTotal'), perProject: rate('sendsPerProject'), weights };
  const reads = { total: rate('readsTotal'), perProject: rate('readsPerProject'), weights };
  if (problems.length === 0 && isEmpty(sends) && isEmpty(reads))
    problems.push({ field: 'limits', text: 'no change given; give at least one limit or project weight' });
  if (problems.length > 0) throw new InvalidRequestError(problems);
  return { sends, reads };
}

function isEmpty({ total, perProject, weights }: QueueChange): boolean {
  return total === undefined && perProject === undefined && weights.size === 0;
}

function checkWeights(given: NonNullable<LimitsChange['projectWeights']>, problems: Problem[]) {
  const weights = new Map<string, number | null>();
  for (const [projectId, weight] of Object.entries(given)) {
    const problem = idProblem(projectId);
    if (problem !== undefined)
      problems.push({ field: visible(`projectWeights.${projectId}`), text: problem });
    if (weight === 'off') weights.set(fairnessKey(projectId), null);
    else if (typeof weight === 'number' && weight >= MIN_WEIGHT && weight <= MAX_WEIGHT)
      weights.set(fairnessKey(projectId), weight);
    else {
      const text = `must be a number from ${MIN_WEIGHT} to ${MAX_WEIGHT}, or off; it is ${quote(weight)}`;
      problems.push({ field: `projectWeights.${projectId}`, text });
    }
  }
  return weights;
}

async function readLimits(client: Client, queues: LimitedQueues): Promise<Limits> {
  const [sends, reads] = await Promise.all([
    readQueue(client, queues.sends),
    readQueue(client, queues.reads),
  ]);
  return { sends, reads };
}

async function updateLimits(client: Client, queues: LimitedQueues, changes: Changes): Promise<Limits> {
  const sendsNow = await updateQueue(client, queues.sends, changes.sends);
  const readsNow = await updateQueue(client, queues.reads, changes.reads);
  const { sends, reads } = await readLimits(client, queues);
  // What describes a queue hears of a change a moment later than the one who made it.
  return { sends: { ...sends, ...sendsNow }, reads: { ...reads, ...readsNow } };
}

type QueueConfig = NonNullable<Awaited<ReturnType<Client['workflowService']['describeTaskQueue']>>['config']>;

const CALL_TIMEOUT_MS = 10_000;

async function readQueue(client: Client, taskQueue: string): Promise<QueueLimits> {
  const { config, stats, effectiveRateLimit } = await ask(client, taskQueue, 'read', () =>
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
  const waiting = Number(stats?.approximateBacklogCount ?? 0);
  const oldestMs = optionalTsToMs(stats?.approximateBacklogAge) ?? 0;
  return { taskQueue, ...limitsOf(config ?? {}), waiting, oldestMs };
}

/** @returns the limits as they are now; undefined where nothing changes */
async function updateQueue(client: Client, taskQueue: string, change: QueueChange) {
  if (isEmpty(change)) return undefined;
  const { total, perProject, weights } = change;
  const set = [...weights].filter((each): each is [string, number] => each[1] !== null);
  const { config } = await ask(client, taskQueue, 'set', () =>
    client.workflowService.updateTaskQueueConfig({
      namespace: client.options.namespace,
      identity: client.options.identity,
      taskQueue,
      taskQueueType: ACTIVITY_TASKS,
      updateQueueRateLimit: rateUpdate(total),
      updateFairnessKeyRateLimitDefault: rateUpdate(perProject),
      setFairnessWeightOverrides: Object.fromEntries(set),
      unsetFairnessWeightOverrides: [...weights.keys()].filter((key) => weights.get(key) === null),
    }),
  );
  return limitsOf(config ?? {});
}

/** Without a rate, the server removes the limit; without an update, it keeps it. */
function rateUpdate(perSecond: number | null | undefined) {
  if (perSecond === undefined) return null;
  return perSecond === null ? {} : { rateLimit: { requestsPerSecond: perSecond } };
}

function limitsOf({ queueRateLimit, fairnessKeysRateLimitDefault, fairnessWeightOverrides }: QueueConfig) {
  const weights = Object.entries(fairnessWeightOverrides ?? {});
  return {
    total: limitOf(queueRateLimit),
    perProject: limitOf(fairnessKeysRateLimitDefault),
    weights: Object.fromEntries(weights.map(([key, weight]) => [key, short(weight)])),
  };
}

/** Of a limit that was removed, the server keeps some facts, and no rate. */
function limitOf(config: QueueConfig['queueRateLimit']): Limit | null {
  const perSecond = config?.rateLimit?.requestsPerSecond ?? null;
  return perSecond === null ? null : { rate: formatRate(perSecond), perSecond: short(perSecond) };
}

/** A float of 32 bits without the digits that it only seems to have. */
function short(float: number): number {
  return Number(float.toPrecision(6));
}

async function ask<T>(
  client: Client,
  taskQueue: string,
  what: 'read' | 'set',
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await within(client, CALL_TIMEOUT_MS, work);
  } catch (error) {
    const old = hasGrpcStatus(error, 'UNIMPLEMENTED');
    if (!old && !hasGrpcStatus(error, 'PERMISSION_DENIED', 'INVALID_ARGUMENT', 'FAILED_PRECONDITION'))
      throw error;
    const why = `The limits of the task queue ${JSON.stringify(taskQueue)} can't be ${what}: ${grpcError(error)?.words ?? ''}.`;
    throw new FollowUpError('LIMITS_UNAVAILABLE', old ? TOO_OLD : why, { cause: error });
  }
}

const TOO_OLD =
  'This Temporal server has no limits of task queues: it lacks the operation UpdateTaskQueueConfig, which servers have ' +
  'since 2025. Update the server.';
